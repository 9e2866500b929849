/** What `GET /push` carries: section 7. No content; a client reads again. */
import Type, { type Static } from 'typebox';
import { Id, open, tagged } from './schema.js';

const thread = { projectId: Id, agentId: Id, threadId: Id };

export const Connected = open('Connected', { type: Type.Literal('connected') });

export const AgentExecutionUpdated = open('AgentExecutionUpdated', {
  type: Type.Literal('agentExecutionUpdated'),
  data: open('ExecutionAddress', { ...thread, executionId: Id }),
});

export const AgentMessageQueueUpdated = open('AgentMessageQueueUpdated', {
  type: Type.Literal('agentMessageQueueUpdated'),
  data: open('ThreadAddress', thread),
});

export type Notification = Static<typeof Notification>;
export const Notification = tagged(
  'type',
  [Connected, AgentExecutionUpdated, AgentMessageQueueUpdated],
  'Notification',
);
export type NotificationOf<T extends Notification['type']> = Extract<Notification, { type: T }>;
