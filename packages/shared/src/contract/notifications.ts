/** What `GET /push` carries: section 7. No content; a client reads again. */
import Type, { type Static } from 'typebox';
import { Id, open, tagged } from './schema.js';

const thread = { projectId: Id, agentId: Id, threadId: Id };

export const Connected = open('Connected', { type: Type.Literal('connected') }, 'Always first.');

export const AgentExecutionUpdated = open(
  'AgentExecutionUpdated',
  {
    type: Type.Literal('agentExecutionUpdated'),
    data: open('ExecutionAddress', { ...thread, executionId: Id }),
  },
  'An execution was recorded, its transcript grew, or it was steered, suspended, resumed or settled. The queue may have changed too.',
);

export const AgentMessageQueueUpdated = open(
  'AgentMessageQueueUpdated',
  {
    type: Type.Literal('agentMessageQueueUpdated'),
    data: open('ThreadAddress', thread),
  },
  'The queue of a session changed.',
);

export type Notification = Static<typeof Notification>;
export const Notification = tagged(
  'type',
  [Connected, AgentExecutionUpdated, AgentMessageQueueUpdated],
  'Notification',
);
export type NotificationOf<T extends Notification['type']> = Extract<Notification, { type: T }>;
