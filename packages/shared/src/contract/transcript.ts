/** Messages as the transcript shows them: section 5. */
import Type, { type Static } from 'typebox';
import { ExecutionStatus, SuspensionKind } from './execution.js';
import { define, Id, nullable, open, refer, Timestamp, tagged } from './schema.js';

export type AttachmentView = Static<typeof AttachmentView>;
export const AttachmentView = open('Attachment', {
  attachmentId: Id,
  fileName: Type.String(),
  mimeType: Type.String(),
  sizeBytes: Type.Integer({ minimum: 0 }),
});

export type TextPart = Static<typeof TextPart>;
export const TextPart = open('TextPart', { type: Type.Literal('text'), text: Type.String() });

export type ReasoningPart = Static<typeof ReasoningPart>;
export const ReasoningPart = open('ReasoningPart', { type: Type.Literal('reasoning'), text: Type.String() });

export type FilePart = Static<typeof FilePart>;
export const FilePart = open('FilePart', { type: Type.Literal('file'), ...AttachmentView.properties });

export type ToolCallState = Static<typeof ToolCallState>;
export const ToolCallState = Type.Enum(['running', 'suspended', 'done', 'error', 'denied', 'cancelled'], {
  title: 'ToolCallState',
});

export interface ToolCallPart {
  type: 'tool-call';
  toolCallId: string;
  toolName: string;
  input: unknown;
  state: ToolCallState;
  output?: unknown;
  error?: string;
  truncated?: boolean;
  child?: ChildView;
}

/** What a delegate has said and done so far. */
export interface ChildView {
  text: string;
  reasoning: string;
  toolCalls: ToolCallPart[];
  truncated: boolean;
}

const ChildSchema = open('Child', {
  text: Type.String(),
  reasoning: Type.String({ description: 'Shares with `text` a budget of 4,000 code points for each delegation.' }),
  toolCalls: Type.Array(refer<ToolCallPart>('ToolCallPart')),
  truncated: Type.Boolean({ description: 'true where something went past the budget and is not kept.' }),
});

export const ToolCallPart = define<ToolCallPart>(
  'ToolCallPart',
  open('ToolCallPart', {
    type: Type.Literal('tool-call'),
    toolCallId: Type.String(),
    toolName: Type.String(),
    input: Type.Unknown({
      description: 'A string, the beginning of its JSON, where `truncated` is set and it was too long.',
    }),
    state: ToolCallState,
    output: Type.Optional(Type.Unknown()),
    error: Type.Optional(Type.String()),
    truncated: Type.Optional(Type.Boolean({ description: 'The whole stands at …/tool-calls/:toolCallId.' })),
    child: Type.Optional(ChildSchema),
  }),
);

export type MessagePart = TextPart | ReasoningPart | FilePart | ToolCallPart;
export const MessagePart = Type.Unsafe<MessagePart>(
  tagged('type', [TextPart, ReasoningPart, FilePart, ToolCallPart], 'MessagePart'),
);

export type MessageView = Static<typeof MessageView>;
export const MessageView = open('Message', {
  id: Id,
  role: Type.Enum(['user', 'assistant']),
  executionId: Id,
  createdAt: Timestamp,
  status: Type.Optional(ExecutionStatus),
  content: Type.Array(MessagePart),
});

export type OpenSuspension = Static<typeof OpenSuspension>;
export const OpenSuspension = open('OpenSuspension', {
  runId: Id,
  executionId: Id,
  toolCallId: Type.String(),
  toolName: Type.String(),
  kind: SuspensionKind,
  input: Type.Unknown(),
  parentToolCallId: Type.Optional(Type.String({ description: "Set for a delegate's call." })),
});

export type TranscriptView = Static<typeof TranscriptView>;
export const TranscriptView = open('Transcript', {
  messages: Type.Array(MessageView, { description: 'Oldest first, in the order of executions, then of positions.' }),
  openSuspensions: Type.Array(OpenSuspension),
  activeExecutionId: nullable(Id),
});
