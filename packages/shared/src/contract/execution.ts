/** What an execution is to a client: sections 4 and 5. */
import Type, { type Static } from 'typebox';
import { Id, nullable, open, Timestamp } from './schema.js';

export type ExecutionStatus = Static<typeof ExecutionStatus>;
export const ExecutionStatus = Type.Enum(['running', 'success', 'error', 'cancelled', 'interrupted', 'suspended'], {
  title: 'ExecutionStatus',
});

/** The statuses that `done` reports: all but `running`. */
export type SettledStatus = Static<typeof SettledStatus>;
export const SettledStatus = Type.Enum(['success', 'error', 'cancelled', 'interrupted', 'suspended'], {
  title: 'SettledStatus',
});

export type ErrorCode = Static<typeof ErrorCode>;
export const ErrorCode = Type.Enum(
  [
    'model_refused',
    'model_unavailable',
    'model_stream_broken',
    'time_limit',
    'step_limit',
    'interrupted',
    'checkpoint_unreadable',
    'internal',
  ],
  { title: 'ErrorCode' },
);

export type Usage = Static<typeof Usage>;
export const Usage = open('Usage', {
  inputTokens: Type.Integer({ minimum: 0 }),
  outputTokens: Type.Integer({ minimum: 0 }),
});

export type ExecutionError = Static<typeof ExecutionError>;
export const ExecutionError = open('ExecutionError', {
  code: ErrorCode,
  message: Type.String({ description: "Fit for a user's eyes." }),
});

export type SuspensionKind = Static<typeof SuspensionKind>;
export const SuspensionKind = Type.Enum(['approval', 'question'], { title: 'SuspensionKind' });

export type ExecutionView = Static<typeof ExecutionView>;
export const ExecutionView = open('Execution', {
  id: Id,
  runId: Id,
  status: ExecutionStatus,
  createdAt: Timestamp,
  startedAt: nullable(Timestamp),
  finishedAt: nullable(Timestamp),
  usage: nullable(Usage),
  error: nullable(ExecutionError),
});

export type ExecutionList = Static<typeof ExecutionList>;
export const ExecutionList = open('ExecutionList', { executions: Type.Array(ExecutionView) });

export type StopAnswer = Static<typeof StopAnswer>;
export const StopAnswer = open('StopAnswer', {
  cancelRequested: Type.Boolean({
    description:
      'true: the request was committed while the execution was running or suspended. false: it had ended, or its run had gone on in a continuation.',
  }),
});

export type ToolCallView = Static<typeof ToolCallView>;
export const ToolCallView = open(
  'ToolCall',
  {
    toolCallId: Type.String(),
    toolName: Type.String(),
    input: Type.Unknown(),
    output: Type.Optional(Type.Unknown({ description: 'Absent while there is none.' })),
  },
  'The whole of a tool call whose input or output was cut elsewhere.',
);
