/**
 * Every key and channel of the product. Keys of one session share a hash tag, so that a script over them works in a
 * Redis Cluster.
 */
export const keys = {
  chatLock: (sessionId: string) => `tk:{${sessionId}}:lock`,
  events: (sessionId: string, executionId: string) => `tk:{${sessionId}}:events:${executionId}`,
  seal: (sessionId: string, executionId: string) => `tk:{${sessionId}}:sealed:${executionId}`,
  /** How many streams each main has of a user. */
  streams: (userId: string) => `tk:user:${userId}:streams`,
  /** A main's own stream, written to wake its blocking read. */
  wakeUp: (mainId: string) => `tk:main:${mainId}:wake-up`,
} as const;

export const channels = {
  /** What becomes of a session's queue items and resumes. */
  session: (sessionId: string) => `tk:session:${sessionId}`,
  /** A user's notifications (contract, section 7). */
  user: (userId: string) => `tk:user:${userId}`,
  /** Stop, for the executions that a worker runs. */
  worker: (workerId: string) => `tk:worker:${workerId}`,
} as const;
