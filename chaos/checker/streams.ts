import type { StreamEvent, StreamRecord, Violation } from '../history.js';
import type { Check, Evidence } from './evidence.js';

/** Events of an execution: they carry a cursor. */
const isOfExecution = ({ id }: StreamEvent) => id !== undefined;

/**
 * Streams (contract, section 4): well formed, `message-queued` first, cursors that rise, text without a gap or a
 * repetition, and `done` exactly once, last, on each that stayed connected and saw its turn begin.
 */
export const streams: Check = (evidence) => {
  const found: Violation[] = [];
  const ends = new Set(
    evidence.history.streams.flatMap(({ events }) => events.flatMap((one) => (one.type === 'done' ? [one.id] : []))),
  );
  for (const stream of evidence.history.streams) {
    const where = `${stream.of} stream of client ${stream.client}, session ${stream.sessionId}, ${stream.instance?.name}`;
    const say = (what: string) =>
      found.push({ rule: 'streams are as section 4 has them', what: `${where}: ${what}${tail(stream)}` });
    if (stream.ending === 'malformed') say(`${stream.mistake}`);
    checkFirst(stream, say);
    checkCursors(stream, say);
    checkText(stream, say);
    // Behind `done` there is nothing to follow.
    if (!ends.has(stream.after ?? '')) checkDone(evidence, stream, say);
  }
  return found;
};

function checkFirst({ of, events }: StreamRecord, say: (what: string) => void): void {
  const first = { send: 'message-queued', resume: 'resume-accepted', follow: null }[of];
  if (first !== null && events[0] && events[0].type !== first) say(`began with ${events[0].type}`);
  const again = events.slice(1).find(({ type }) => type === 'message-queued' || type === 'resume-accepted');
  if (again) say(`has a second ${again.type}`);
}

function checkCursors({ events, after }: StreamRecord, say: (what: string) => void): void {
  // A cursor that the record has not (Redis lost what it stood for) counts as none: a snapshot begins anew.
  let last = events[0]?.type === 'snapshot' ? '' : (after ?? '');
  for (const { id, type } of events.filter(isOfExecution)) {
    if (id !== undefined && id <= last) say(`cursor ${id} of ${type} does not rise above ${last}`);
    last = id ?? last;
  }
}

/** The model's words are numbered: each stream has them without a gap, from wherever it began. */
function checkText({ events, after }: StreamRecord, say: (what: string) => void): void {
  const next = new Map<string, number>();
  let isJoined = after === null;
  const take = (text: string, mayJump: boolean) => {
    for (const [, request = '', index = ''] of text.matchAll(/r(\d+)\.(\d+) /g)) {
      const expected = next.get(request) ?? (isJoined ? 0 : Number(index));
      if (Number(index) !== expected && !mayJump) say(`r${request}.${index} came where r${request}.${expected} should`);
      next.set(request, Number(index) + 1);
      isJoined = true;
    }
  };
  for (const { type, data } of events) {
    if (type === 'snapshot') {
      take(textOf(data.messages), true);
      isJoined = true;
    } else if (type === 'text-delta') take(String(data.delta), false);
  }
}

function textOf(messages: unknown): string {
  const list = messages as { content: { type: string; text?: string }[] }[];
  return list.flatMap(({ content }) => content.map(({ type, text }) => (type === 'text' ? (text ?? '') : ''))).join('');
}

function checkDone({ final, executions }: Evidence, stream: StreamRecord, say: (what: string) => void): void {
  const { events, ending, sessionId } = stream;
  const done = events.filter(({ type }) => type === 'done');
  if (done.length > 1) say(`has ${done.length} times done`);
  if (done.length > 0 && events.at(-1)?.type !== 'done') say('goes on after done');
  for (const { data } of done) checkStatus(executions.get(String(data.executionId))?.status, String(data.status), say);
  if (ending === 'open') say('never ended');
  if (ending !== 'clean' || done.length > 0 || final.deleted.has(sessionId)) return;
  if (wasLeaving(stream)) return;
  const last = events.at(-1)?.type;
  if (last !== 'message-steered' && last !== 'message-removed') say('ended without done');
}

/** What `done` said stays, but for a suspended execution, which a Stop may cancel. */
function checkStatus(status: string | undefined, said: string, say: (what: string) => void): void {
  const isSame = status === undefined || status === said || (said === 'suspended' && status === 'cancelled');
  if (!isSame) say(`done said ${said}, and the execution is ${status}`);
}

/** A main that was asked to stop ends its streams cleanly (contract, section 9.10). */
function wasLeaving({ instance, endedAt }: StreamRecord): boolean {
  return instance?.stoppingAt != null && (endedAt ?? 0) >= instance.stoppingAt;
}

function tail({ events, ending }: StreamRecord): string {
  const last = events.slice(-6).map(({ id, type }) => (id ? `${type} ${id.slice(8, 16)}` : type));
  return ` [${events.length} events, … ${last.join(', ')}; ${ending}]`;
}
