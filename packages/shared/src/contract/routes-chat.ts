/** The routes of sessions, executions, queues and notifications: sections 4 to 7. */
import Type from 'typebox';
import { Deleted, Removed } from './access.js';
import * as chat from './chat.js';
import { ChatEvent } from './events.js';
import { Notification } from './notifications.js';
import { PageQuery } from './paging.js';
import { answer, created, grouped, ok, type Route, type RouteParameter } from './route.js';

const sessions = '/projects/:projectId/agents/v2/:agentId/chat';
const thread = `${sessions}/:threadId`;
const execution = `${thread}/executions/:executionId`;
const queue = `${thread}/queue`;

const idempotencyKey: RouteParameter = {
  in: 'header',
  name: 'Idempotency-Key',
  schema: Type.String({ minLength: 1, maxLength: 255 }),
  description: 'The same key again within 24 hours gives the first acceptance and adds nothing.',
};
const lastEventId: RouteParameter = {
  in: 'header',
  name: 'Last-Event-ID',
  schema: Type.String(),
  description: 'A cursor of this execution. Any other counts as none.',
};
const paging: RouteParameter[] = [
  { in: 'query', name: 'before', schema: PageQuery.properties.before, description: 'Only what stands before this id.' },
  { in: 'query', name: 'limit', schema: PageQuery.properties.limit, description: 'How many at most.' },
];

const stream = (description: string) => ({
  status: 200,
  response: { description, schema: ChatEvent, contentType: 'text/event-stream' },
});

const chatting: Route[] = grouped('Chat', 4, [
  {
    method: 'POST',
    path: sessions,
    auth: 'agent:execute',
    owner: true,
    summary: 'Sends a message. Accepted means kept: from `message-queued`, or 202, on it survives everything.',
    parameters: [idempotencyKey],
    request: chat.ChatRequest,
    responses: [
      stream('The events of the message and of its execution; `message-queued` first.'),
      answer(202, chat.Accepted, 'Accepted, with `Accept: application/json`.'),
    ],
    problems: ['agents_disabled', 'idempotency_mismatch', 'queue_full', 'too_many_streams'],
  },
  {
    method: 'POST',
    path: `${sessions}/attachments`,
    auth: 'agent:execute',
    summary: 'Sends an attachment ahead of its message. One that no message names within an hour is removed.',
    upload: true,
    responses: created(chat.AttachmentView),
  },
  {
    method: 'GET',
    path: `${sessions}/attachments/:attachmentId`,
    auth: 'agent:read',
    owner: true,
    section: 5,
    summary: 'Returns the bytes of an attachment. The type is sniffed; only PNG, JPEG, GIF and WebP are shown inline.',
    responses: [{ status: 200, response: { description: 'The bytes.', contentType: 'application/octet-stream' } }],
  },
  {
    method: 'GET',
    path: sessions,
    auth: 'agent:read',
    section: 5,
    summary: "Lists the caller's sessions with the agent, newest first.",
    parameters: paging,
    responses: ok(chat.SessionList),
  },
  {
    method: 'GET',
    path: `${thread}/messages`,
    auth: 'agent:read',
    owner: true,
    section: 5,
    summary: 'Reads the transcript: what every recovery rests on.',
    parameters: paging,
    responses: ok(chat.TranscriptView),
  },
  {
    method: 'DELETE',
    path: thread,
    auth: 'agent:execute',
    owner: true,
    section: 5,
    summary: 'Deletes a session with its pending messages and checkpoints. Its id stays 404 for good.',
    responses: ok(Deleted),
    problems: ['execution_running'],
  },
  {
    method: 'POST',
    path: `${sessions}/resume`,
    auth: 'agent:execute',
    owner: true,
    section: 5,
    summary: 'Answers a suspension: an approval or a question.',
    parameters: [idempotencyKey],
    request: chat.ResumeRequest,
    responses: [
      stream('`resume-accepted` first; then the continuation once nothing is open, else `done` with `suspended`.'),
      answer(202, chat.ResumeAccepted, 'Accepted, with `Accept: application/json`.'),
    ],
    problems: ['agents_disabled', 'suspension_resolved', 'idempotency_mismatch', 'too_many_streams'],
  },
]);

const executing: Route[] = grouped('Executions', 5, [
  {
    method: 'GET',
    path: `${thread}/executions`,
    auth: 'agent:read',
    owner: true,
    summary: "Lists a session's executions in their order.",
    responses: ok(chat.ExecutionList),
  },
  {
    method: 'GET',
    path: `${execution}/events`,
    auth: 'agent:read',
    owner: true,
    section: 4,
    summary:
      'Follows an execution, from its start or after a cursor. Where events are no longer kept, `snapshot` comes first.',
    parameters: [lastEventId],
    responses: [stream('The events of the execution; `done` last.')],
    problems: ['too_many_streams'],
  },
  {
    method: 'DELETE',
    path: execution,
    auth: 'agent:execute',
    owner: true,
    summary: 'Stop: cancels this one execution. The recorded status tells the outcome.',
    responses: ok(chat.StopAnswer),
  },
  {
    method: 'GET',
    path: `${execution}/tool-calls/:toolCallId`,
    auth: 'agent:read',
    owner: true,
    section: 4,
    summary: 'Returns the whole input and output of a tool call.',
    responses: ok(chat.ToolCallView),
  },
]);

const queueing: Route[] = grouped('Queue', 6, [
  {
    method: 'GET',
    path: queue,
    auth: 'agent:read',
    owner: true,
    summary: 'Lists the pending messages in order.',
    responses: ok(chat.QueueView),
  },
  {
    method: 'PATCH',
    path: `${queue}/:queueId`,
    auth: 'agent:execute',
    owner: true,
    summary: 'Gives a pending message another text; its place and attachments stay.',
    request: chat.QueueEdit,
    responses: ok(chat.QueueItemView),
    problems: ['item_started'],
  },
  {
    method: 'DELETE',
    path: `${queue}/:queueId`,
    auth: 'agent:execute',
    owner: true,
    summary: 'Removes a pending message with its attachments.',
    responses: ok(Removed),
    problems: ['item_started'],
  },
  {
    method: 'POST',
    path: `${queue}/:queueId/reorder`,
    auth: 'agent:execute',
    owner: true,
    summary: "Moves a pending message to the target's place and shifts those between.",
    request: chat.QueueReorder,
    responses: ok(chat.QueueView),
    problems: ['item_started', 'item_reserved', 'queue_changed'],
  },
  {
    method: 'POST',
    path: `${queue}/:queueId/steer`,
    auth: 'agent:execute',
    owner: true,
    summary: 'Reserves a pending message for the execution that runs now.',
    request: chat.QueueSteer,
    responses: ok(chat.QueueView),
    problems: ['item_started', 'execution_not_steerable'],
  },
  {
    method: 'DELETE',
    path: `${queue}/:queueId/steer`,
    auth: 'agent:execute',
    owner: true,
    summary: 'Gives a reservation back.',
    responses: ok(chat.QueueView),
    problems: ['item_started'],
  },
]);

const notifying: Route[] = grouped('Notifications', 7, [
  {
    method: 'GET',
    path: '/push',
    auth: 'user',
    summary: "Says that something of the caller's own sessions has changed. It carries no content: read again.",
    responses: [
      {
        status: 200,
        response: { description: '`connected` first.', schema: Notification, contentType: 'text/event-stream' },
      },
    ],
    problems: ['too_many_streams'],
  },
]);

export const chatRoutes: Route[] = [...chatting, ...executing, ...queueing, ...notifying];
