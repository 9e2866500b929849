/** Requests and responses of sessions and their queues: sections 4 to 6. Their limits that come from the configuration are
 * checked where the configuration is known; the bounds here are only sane maxima. */
import Type, { type Static } from 'typebox';
import { closed, Id, nullable, open, Timestamp } from './schema.js';
import { AttachmentView } from './transcript.js';

export { ExecutionList, ExecutionView, StopAnswer, ToolCallView } from './execution.js';
export {
  AttachmentView,
  type ChildView,
  FilePart,
  MessagePart,
  MessageView,
  OpenSuspension,
  ReasoningPart,
  TextPart,
  ToolCallPart,
  ToolCallState,
  TranscriptView,
} from './transcript.js';

const Message = Type.String({
  description:
    'At most MAX_MESSAGE_CHARS code points (a limit of the configuration). May be empty only beside an attachment.',
});

/** Control characters, DEL included, are refused; slashes are kept as given, since no name ever becomes a path here. */
export const FileName = Type.String({
  minLength: 1,
  maxLength: 255,
  pattern: '^[^\\u0000-\\u001f\\u007f-\\u009f]*$',
  description: 'Without control characters.',
});

export const MimeType = Type.String({
  maxLength: 255,
  pattern: '^[A-Za-z0-9!#$&^_.+-]+/[A-Za-z0-9!#$&^_.+-]+[ \\t]*(;[\\t\\u0020-\\u007e]*)?$',
  description: 'type/subtype, perhaps with parameters. Not believed: what the download says is sniffed.',
});

export type InlineAttachment = Static<typeof InlineAttachment>;
export const InlineAttachment = closed('InlineAttachment', {
  fileName: FileName,
  mimeType: MimeType,
  data: Type.String({
    minLength: 4,
    format: 'base64',
    contentEncoding: 'base64',
    description:
      'The bytes, in padded base64; at least one byte, at most MAX_ATTACHMENT_BYTES (a limit of the configuration).',
  }),
});

export type AttachmentRef = Static<typeof AttachmentRef>;
export const AttachmentRef = closed('AttachmentRef', { attachmentId: Id }, 'An attachment that was sent first.');

export type ChatRequest = Static<typeof ChatRequest>;
export const ChatRequest = closed('ChatRequest', {
  message: Message,
  sessionId: Type.Optional(
    Type.String({ format: 'uuid', description: 'Absent: a new session. An unknown UUID: a session with that id.' }),
  ),
  attachments: Type.Optional(
    Type.Array(Type.Union([InlineAttachment, AttachmentRef]), {
      description: 'At most MAX_ATTACHMENTS (a limit of the configuration).',
    }),
  ),
});

export type ApprovalAnswer = Static<typeof ApprovalAnswer>;
export const ApprovalAnswer = closed('ApprovalAnswer', {
  approved: Type.Boolean(),
  reason: Type.Optional(Type.String({ maxLength: 10_000, description: 'Told to the model.' })),
});

export type QuestionAnswer = Static<typeof QuestionAnswer>;
export const QuestionAnswer = closed('QuestionAnswer', {
  answer: Type.String({ description: 'At most MAX_MESSAGE_CHARS code points (a limit of the configuration).' }),
});

export type ResumeRequest = Static<typeof ResumeRequest>;
export const ResumeRequest = closed('ResumeRequest', {
  runId: Id,
  toolCallId: Type.String({ minLength: 1, maxLength: 200 }),
  resumeData: Type.Union([ApprovalAnswer, QuestionAnswer]),
});

/** 202 of `chat` with `Accept: application/json`; the fields of `message-queued`. */
export type Accepted = Static<typeof Accepted>;
export const Accepted = open('Accepted', { queueId: Id, sessionId: Id, messageId: Id });

/** 202 of `chat/resume` with `Accept: application/json`; the fields of `resume-accepted`. */
export type ResumeAccepted = Static<typeof ResumeAccepted>;
export const ResumeAccepted = open('ResumeAccepted', {
  sessionId: Id,
  runId: Id,
  toolCallId: Type.String(),
  remaining: Type.Integer({ minimum: 0, description: 'Suspensions of the run that are still open.' }),
});

export type SessionStatus = Static<typeof SessionStatus>;
export const SessionStatus = Type.Enum(['idle', 'queued', 'running', 'suspended'], { title: 'SessionStatus' });

export type SessionListItem = Static<typeof SessionListItem>;
export const SessionListItem = open('SessionListItem', {
  id: Id,
  title: Type.String({ description: 'The beginning of the first message.' }),
  status: SessionStatus,
  updatedAt: Timestamp,
});

export type SessionList = Static<typeof SessionList>;
export const SessionList = open('SessionList', {
  sessions: Type.Array(SessionListItem, { description: 'Newest first.' }),
});

export type QueueItemView = Static<typeof QueueItemView>;
export const QueueItemView = open('QueueItem', {
  id: Id,
  messageId: Id,
  message: Type.String(),
  attachments: Type.Array(AttachmentView),
  createdAt: Timestamp,
  steeringExecutionId: nullable(Id),
});

export type QueueView = Static<typeof QueueView>;
export const QueueView = open('QueueList', {
  items: Type.Array(QueueItemView, { description: 'Pending only, in order.' }),
  steerableExecutionId: nullable(Id),
});

export type QueueEdit = Static<typeof QueueEdit>;
export const QueueEdit = closed('QueueEdit', { message: Message });

export type QueueReorder = Static<typeof QueueReorder>;
export const QueueReorder = closed('QueueReorder', {
  targetQueueId: Id,
  expectedQueueIds: Type.Array(Id, {
    maxItems: 10_000,
    description: 'Pending, without reserved steers, in their order.',
  }),
});

export type QueueSteer = Static<typeof QueueSteer>;
export const QueueSteer = closed('QueueSteer', { executionId: Id });
