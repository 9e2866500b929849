/** Where a session belongs: what a notification and a permission check need to know of it. */
export interface SessionRef {
  sessionId: string;
  projectId: string;
  agentId: string;
  userId: string;
}

/** An execution that runs and was asked to stop, and whom to tell. */
export interface MarkedExecution {
  executionId: string;
  workerId: string;
  session: SessionRef;
}
