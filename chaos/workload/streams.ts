import type { IncomingMessage } from 'node:http';
import { SseParser } from '../../test/support/sse-parser.js';
import type { StreamEvent, StreamRecord } from '../history.js';
import { now } from '../stage/clock.js';

/**
 * Reads a stream into its record until it ends, or until the client has had enough: `leaveAfter` events.
 * @param onEvent told of each event, as it comes
 * @returns a promise of its end, and a way to leave before
 */
export function readStream(
  response: IncomingMessage,
  record: StreamRecord,
  leaveAfter: number,
  onEvent: (event: StreamEvent) => void,
): { ended: Promise<void>; leave: () => void } {
  const finish = (ending: StreamRecord['ending']) => {
    if (record.ending !== 'open') return;
    record.ending = ending;
    record.endedAt = now();
    response.destroy();
  };
  const guarded = (parse: () => void) => {
    try {
      if (record.ending === 'open') parse();
    } catch (error) {
      record.mistake = String(error);
      finish('malformed');
    }
  };
  const parser = new SseParser(({ id, data }) => {
    if (record.ending !== 'open') return;
    const event = { type: data.type, id, at: now(), data };
    record.events.push(event);
    onEvent(event);
    if (record.events.length >= leaveAfter) finish('closed');
  });
  const ended = new Promise<void>((resolve) => response.once('close', () => resolve()));
  response.on('data', (bytes: Buffer) => guarded(() => parser.push(bytes)));
  response.on('end', () => {
    guarded(() => parser.end());
    finish('clean');
  });
  response.on('error', () => finish('broken'));
  response.on('close', () => finish('broken'));
  return { ended, leave: () => finish('closed') };
}
