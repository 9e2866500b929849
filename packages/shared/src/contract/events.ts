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

export const MessageQueued = event('message-queued', Accepted.properties);
export const ResumeAcceptedEvent = event('resume-accepted', ResumeAccepted.properties);
export const ExecutionStarted = event('execution-started', {
  executionId: Id,
  runId: Id,
  sessionId: Id,
  message: Type.Optional(EventMessage),
});
export const StartStep = event('start-step', { step: Type.Integer({ minimum: 1 }) });
export const FinishStep = event('finish-step', { step: Type.Integer({ minimum: 1 }), usage: Usage });
export const TextStart = event('text-start', { id: Type.String() });
export const TextDelta = event('text-delta', { id: Type.String(), delta: Type.String() });
export const TextEnd = event('text-end', { id: Type.String() });
export const ReasoningStart = event('reasoning-start', { id: Type.String() });
export const ReasoningDelta = event('reasoning-delta', { id: Type.String(), delta: Type.String() });
export const ReasoningEnd = event('reasoning-end', { id: Type.String() });
export const ToolInputStart = event('tool-input-start', call);
export const ToolInputDelta = event('tool-input-delta', { ...call, delta: Type.String() });
export const ToolCall = event('tool-call', { ...call, input: Type.Unknown(), truncated });
export const ToolResult = event('tool-result', { ...call, output: Type.Unknown(), isError: Type.Boolean(), truncated });
export const ToolCallSuspended = event('tool-call-suspended', {
  ...call,
  runId: Id,
  input: Type.Unknown(),
  kind: SuspensionKind,
  truncated,
});
export const MessageSteered = event('message-steered', { queueId: Id, executionId: Id, message: EventMessage });
export const MessageRemoved = event('message-removed', { queueId: Id });
export const ErrorEvent = event('error', { code: ErrorCode, message: Type.String() });
export const Done = event('done', {
  sessionId: Id,
  executionId: Id,
  status: SettledStatus,
  usage: nullable(Usage),
});
export const Snapshot = event('snapshot', { messages: Type.Array(MessageView) });

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
  event('subagent-chunk', {
    toolCallId: Type.String(),
    chunk: tagged('type', [...outputEvents, refer<SubagentChunk>('SubagentChunk')]),
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

function event<T extends string, P extends TProperties>(type: T, fields: P) {
  const title = type
    .split('-')
    .map((word) => word[0]?.toUpperCase() + word.slice(1))
    .join('');
  return open(`${title}Event`, { type: Type.Literal(type), ...fields });
}
