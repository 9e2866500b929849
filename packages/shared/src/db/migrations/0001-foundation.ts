/** Everything a session, its queue, its executions and its transcript stand in. */
export const name = '0001-foundation';

export const up = `
create table users (
  id uuid primary key,
  email text not null,
  name text not null,
  created_at timestamptz not null default now()
);
create unique index users_email on users (lower(email));

create table tokens (
  id uuid primary key,
  user_id uuid not null references users on delete cascade,
  name text not null,
  hash bytea not null unique,
  created_at timestamptz not null default now()
);
create index tokens_user on tokens (user_id);

create table sign_in_links (
  hash bytea primary key,
  user_id uuid not null references users on delete cascade,
  expires_at timestamptz not null
);

-- A browser's sign-in. It ends with the token that made it; one of the instance admin has no user.
create table web_sessions (
  hash bytea primary key,
  user_id uuid references users on delete cascade,
  token_id uuid references tokens on delete cascade,
  admin_hash bytea,
  expires_at timestamptz not null,
  check ((user_id is null) <> (admin_hash is null))
);
create index web_sessions_token on web_sessions (token_id);
create index web_sessions_user on web_sessions (user_id);

create table projects (
  id uuid primary key,
  name text not null,
  created_at timestamptz not null default now()
);

create table members (
  project_id uuid not null references projects on delete cascade,
  user_id uuid not null references users on delete cascade,
  role text not null check (role in ('viewer', 'user', 'editor', 'admin')),
  primary key (project_id, user_id)
);
create index members_user on members (user_id);

create table credentials (
  id uuid primary key,
  project_id uuid not null references projects on delete cascade,
  name text not null,
  secret bytea not null,
  created_at timestamptz not null default now()
);
create index credentials_project on credentials (project_id);

create table agents (
  id uuid primary key,
  project_id uuid not null references projects on delete cascade,
  name text not null,
  config jsonb not null,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  deleted_at timestamptz
);
create index agents_project on agents (project_id) where deleted_at is null;

-- One chat between one user and one agent. status and ready_at are derived by refreshSession alone.
create table sessions (
  id uuid primary key,
  project_id uuid not null references projects on delete cascade,
  agent_id uuid not null references agents on delete cascade,
  user_id uuid not null references users on delete cascade,
  kind text not null default 'test' check (kind = 'test'),
  title text not null,
  status text not null default 'idle' check (status in ('idle', 'queued', 'running', 'suspended')),
  ready_at timestamptz,
  execution_count integer not null default 0,
  next_position bigint not null default 1,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  deleted_at timestamptz
);
create index sessions_ready on sessions (ready_at) where ready_at is not null;
create index sessions_list on sessions (agent_id, user_id, updated_at desc, id desc) where deleted_at is null;
create index sessions_user on sessions (user_id, updated_at desc);
create index sessions_updated on sessions (updated_at) where deleted_at is null;

create table executions (
  id uuid primary key,
  session_id uuid not null references sessions on delete cascade,
  run_id uuid not null,
  number integer not null,
  status text not null check (status in ('running', 'success', 'error', 'cancelled', 'interrupted', 'suspended')),
  worker_id text not null,
  lease_expires_at timestamptz not null,
  cancel_requested_at timestamptz,
  steerable boolean not null default true,
  queue_id uuid,
  checkpoint_id uuid,
  steps integer not null default 0,
  input_tokens bigint,
  output_tokens bigint,
  error_code text,
  error_message text,
  -- The number of the last event that the record covers, and what was under way after it (a snapshot's cursor).
  recorded_n bigint not null default 1,
  open_blocks jsonb not null default '[]',
  -- The number of 'done'.
  final_n bigint,
  config jsonb not null,
  created_at timestamptz not null default clock_timestamp(),
  started_at timestamptz,
  finished_at timestamptz,
  unique (session_id, number),
  check ((status = 'running') = (finished_at is null)),
  check ((status = 'running') = (final_n is null)),
  check (status = 'running' or not steerable),
  check (cancel_requested_at is null or not steerable)
);
-- At most one execution of a session runs at any time, whatever locks expire.
create unique index executions_one_running on executions (session_id) where status = 'running';
create index executions_running on executions (worker_id) where status = 'running';
create index executions_run on executions (run_id);

-- Canonical messages. A pending one has no execution and no place yet; place is (execution's number, position in it).
create table messages (
  id uuid primary key,
  session_id uuid not null references sessions on delete cascade,
  role text not null check (role in ('user', 'assistant')),
  text text not null default '',
  execution_id uuid references executions on delete cascade,
  first_execution_id uuid references executions on delete cascade,
  place_execution integer,
  place integer,
  -- For a steered message: the number of its message-steered event.
  steered_n bigint,
  created_at timestamptz not null default clock_timestamp(),
  check ((execution_id is null) = (place is null)),
  check ((execution_id is null) = (place_execution is null)),
  check (role = 'user' or execution_id is not null)
);
create unique index messages_place on messages (session_id, place_execution, place);
create index messages_execution on messages (execution_id);
create index messages_first_execution on messages (first_execution_id);

create table attachments (
  id uuid primary key,
  agent_id uuid not null references agents on delete cascade,
  user_id uuid not null references users on delete cascade,
  message_id uuid references messages on delete cascade,
  ordinal integer not null default 0,
  file_name text not null,
  mime_type text not null,
  size_bytes bigint not null,
  data bytea,
  object_key text,
  created_at timestamptz not null default now(),
  check ((data is null) <> (object_key is null))
);
create index attachments_message on attachments (message_id, ordinal);
create index attachments_orphans on attachments (created_at) where message_id is null;

-- Objects of an S3 store that no attachment names: on their way up, or to be removed. See attachments/loose-objects.ts.
create table loose_objects (
  key text primary key,
  state text not null check (state in ('uploading', 'doomed')),
  due_at timestamptz not null
);
create index loose_objects_due on loose_objects (due_at);

create function doom_object() returns trigger language plpgsql as $$
begin
  insert into loose_objects (key, state, due_at) values (old.object_key, 'doomed', now()) on conflict (key) do nothing;
  return null;
end $$;
create trigger attachments_doom_object after delete on attachments
  for each row when (old.object_key is not null) execute function doom_object();

-- 'This message has not started yet.'
create table queue_items (
  id uuid primary key,
  session_id uuid not null references sessions on delete cascade,
  message_id uuid not null unique references messages on delete cascade,
  position bigint not null,
  steering_execution_id uuid references executions on delete set null,
  reserved_order bigint,
  created_at timestamptz not null default clock_timestamp(),
  unique (session_id, position) deferrable initially immediate,
  check ((steering_execution_id is null) = (reserved_order is null))
);

-- What became of a queue item: its id is kept, never its text.
create table queue_outcomes (
  queue_id uuid primary key,
  session_id uuid not null references sessions on delete cascade,
  message_id uuid not null,
  outcome text not null check (outcome in ('started', 'steered', 'removed')),
  execution_id uuid,
  at timestamptz not null default now(),
  check ((outcome = 'removed') = (execution_id is null))
);
create index queue_outcomes_session on queue_outcomes (session_id);

-- The timeline of a message, append-only. n is the number of the first event that the row holds.
create table entries (
  message_id uuid not null references messages on delete cascade,
  execution_number integer not null,
  n bigint not null,
  execution_id uuid not null references executions on delete cascade,
  kind text not null check (kind in ('step', 'text', 'reasoning', 'tool-call', 'child-text', 'child-reasoning')),
  block text,
  tool_call_id text,
  text text,
  primary key (message_id, execution_number, n)
);
create index entries_execution on entries (execution_id);

create table tool_calls (
  id text primary key,
  session_id uuid not null references sessions on delete cascade,
  run_id uuid not null,
  execution_id uuid not null references executions on delete cascade,
  message_id uuid not null references messages on delete cascade,
  parent_id text references tool_calls on delete cascade,
  ordinal bigint not null,
  tool_name text not null,
  input text not null,
  input_preview text,
  state text not null check (state in ('running', 'suspended', 'done', 'error', 'denied', 'cancelled')),
  output text,
  output_preview text,
  error text,
  provider_call_id text,
  provider_key text,
  created_at timestamptz not null default now()
);
create index tool_calls_message on tool_calls (message_id);
create index tool_calls_execution on tool_calls (execution_id);
create index tool_calls_parent on tool_calls (parent_id);

create table checkpoints (
  id uuid primary key,
  session_id uuid not null references sessions on delete cascade,
  run_id uuid not null,
  execution_id uuid not null unique references executions on delete cascade,
  status text not null check (status in ('open', 'answered', 'resumed', 'cancelled')),
  version integer not null,
  state bytea,
  answered_at timestamptz,
  continuation_id uuid,
  created_at timestamptz not null default now(),
  check ((status = 'resumed') = (continuation_id is not null))
);
create unique index checkpoints_one_open on checkpoints (session_id) where status in ('open', 'answered');
create index checkpoints_run on checkpoints (run_id);

create table suspensions (
  tool_call_id text primary key references tool_calls on delete cascade,
  checkpoint_id uuid not null references checkpoints on delete cascade,
  ordinal integer not null,
  kind text not null check (kind in ('approval', 'question')),
  n bigint not null,
  resume_data jsonb,
  answered_at timestamptz,
  check ((resume_data is null) = (answered_at is null))
);
create index suspensions_checkpoint on suspensions (checkpoint_id);

create table idempotency_keys (
  user_id uuid not null references users on delete cascade,
  key text not null,
  hash bytea not null,
  answer jsonb,
  created_at timestamptz not null default now(),
  primary key (user_id, key)
);
create index idempotency_keys_created on idempotency_keys (created_at);
`;
