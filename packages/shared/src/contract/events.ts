/**
 * The SSE events of section 4's table, `resume-accepted` (section 5) and `snapshot`. No event is larger than 64 KiB, but for
 * `snapshot` and the `message` of `execution-started` and `message-steered`.
 */
import Type, { type Static, type TProperties } from 'typebox';
import { Accepted, ResumeAccepted } from './chat.js';
import { ErrorCode, SettledStatus, SuspensionKind, Usage } from './execution.js';
import { define, Id, nullable, open, refer, tagged } from './schema.js';
import { AttachmentView, MessageView } from './transcript.js';

export { ErrorCode, ExecutionStatus, SettledStatus, SuspensionKind, Usage } from './execution.js';

/** A message as the events of its start carry it: the accepted text, after any edit. */
export type EventMessage = Static<typeof EventMessage>;
export const EventMessage = open('EventMessage', {
  id: Id,
  text: Type.String(),
  attachments: Type.Array(AttachmentView),
});

const truncated = Type.Optional(
  Type.Boolean({ description: 'true: a string, the beginning of its JSON, stands in place of what was too long.' }),
);
const call = { toolCallId: Type.String(), toolName: Type.String() };

export const MessageQueued = event(
  'message-queued',
  'The session, message and queue item are committed. Always first.',
  Accepted.properties,
);
export const ResumeAcceptedEvent = event(
  'resume-accepted',
  'The answer to a suspension is committed. Always first on a resume.',
  ResumeAccepted.properties,
);
export const ExecutionStarted = event(
  'execution-started',
  'The item is claimed, the execution recorded, its cancel handle registered. `message` is the accepted text, after any edit; absent for a continuation.',
  {
    executionId: Id,
    runId: Id,
    sessionId: Id,
    message: Type.Optional(EventMessage),
  },
);
export const StartStep = event('start-step', 'A model request begins.', { step: Type.Integer({ minimum: 1 }) });
export const FinishStep = event('finish-step', 'A model request and its tool batch are through.', {
  step: Type.Integer({ minimum: 1 }),
  usage: Usage,
});
export const TextStart = event('text-start', 'Model text begins.', { id: Type.String() });
export const TextDelta = event('text-delta', 'Model text.', { id: Type.String(), delta: Type.String() });
export const TextEnd = event('text-end', 'Model text ends.', { id: Type.String() });
export const ReasoningStart = event('reasoning-start', 'Model reasoning begins.', { id: Type.String() });
export const ReasoningDelta = event('reasoning-delta', 'Model reasoning.', { id: Type.String(), delta: Type.String() });
export const ReasoningEnd = event('reasoning-end', 'Model reasoning ends.', { id: Type.String() });
export const ToolInputStart = event('tool-input-start', 'The arguments of a call begin to arrive.', call);
export const ToolInputDelta = event('tool-input-delta', 'Arguments as they arrive.', { ...call, delta: Type.String() });
export const ToolCall = event('tool-call', 'A call is complete.', { ...call, input: Type.Unknown(), truncated });
export const ToolResult = event('tool-result', 'A call ended.', {
  ...call,
  output: Type.Unknown(),
  isError: Type.Boolean(),
  truncated,
});
export const ToolCallSuspended = event(
  'tool-call-suspended',
  'The checkpoint is committed and the call waits for a person.',
  {
    ...call,
    runId: Id,
    input: Type.Unknown(),
    kind: SuspensionKind,
    truncated,
  },
);
export const MessageSteered = event(
  'message-steered',
  'A steered message became part of the execution. It also ends the stream that waits for the message.',
  { queueId: Id, executionId: Id, message: EventMessage },
);
export const MessageRemoved = event(
  'message-removed',
  'On the waiting stream of an item that was removed; the stream ends, without `done`.',
  { queueId: Id },
);
export const ErrorEvent = event('error', "What went wrong, fit for a user's eyes; `done` follows.", {
  code: ErrorCode,
  message: Type.String(),
});
export const Done = event(
  'done',
  'The settled state is committed: a read after it shows it. Exactly once, last. `usage` is null where no model request was recorded.',
  {
    sessionId: Id,
    executionId: Id,
    status: SettledStatus,
    usage: nullable(Usage),
  },
);
export const Snapshot = event(
  'snapshot',
  "The first event where those asked for are no longer kept: that execution's part of the transcript, up to this event's cursor.",
  { messages: Type.Array(MessageView) },
);

const outputEvents = [
  TextStart,
  TextDelta,
  TextEnd,
  ReasoningStart,
  ReasoningDelta,
  ReasoningEnd,
  ToolInputStart,
  ToolInputDelta,
  ToolCall,
  ToolResult,
  ToolCallSuspended,
] as const;

/** Text, reasoning and tool events: what a model and its tools say, of the agent itself or of a delegate. */
export type OutputEvent = Static<(typeof outputEvents)[number]>;

/** Live output of a delegate; nested where the delegate delegates. */
export interface SubagentChunk {
  type: 'subagent-chunk';
  toolCallId: string;
  chunk: OutputEvent | SubagentChunk;
}

export const SubagentChunk = define<SubagentChunk>(
  'SubagentChunk',
  event('subagent-chunk', 'Live output of a delegate.', {
    toolCallId: Type.String(),
    chunk: tagged('type', [...outputEvents, refer<SubagentChunk>('SubagentChunk')], 'Chunk'),
  }),
);

const executionEvents = [
  ExecutionStarted,
  StartStep,
  FinishStep,
  ...outputEvents,
  SubagentChunk,
  MessageSteered,
  ErrorEvent,
  Done,
] as const;

/** What the worker appends to an execution's stream: each carries a cursor. */
export type ExecutionEvent = Static<(typeof executionEvents)[number]>;
export const ExecutionEvent = tagged('type', executionEvents, 'ExecutionEvent');

const chatEvents = [MessageQueued, ResumeAcceptedEvent, MessageRemoved, Snapshot, ...executionEvents] as const;

/** Everything that a chat, resume or follow stream may carry. */
export type ChatEvent = Static<(typeof chatEvents)[number]>;
export const ChatEvent = tagged('type', chatEvents, 'ChatEvent');

/** The event of one type, such as `EventOf<'done'>`. */
export type EventOf<T extends ChatEvent['type']> = Extract<ChatEvent, { type: T }>;

function event<T extends string, P extends TProperties>(type: T, description: string, fields: P) {
  const title = type
    .split('-')
    .map((word) => word[0]?.toUpperCase() + word.slice(1))
    .join('');
  return open(`${title}Event`, { type: Type.Literal(type), ...fields }, description);
}
