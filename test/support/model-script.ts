import { Gate } from './gate.js';

/** One thing that the scripted model does in its answer, in order. */
export type Part =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'reasoning'; readonly text: string }
  | { readonly kind: 'tool'; readonly id?: string; readonly name: string; readonly pieces: readonly string[] }
  | { readonly kind: 'gate'; readonly gate: Gate }
  | { readonly kind: 'raw'; readonly text: string }
  | { readonly kind: 'cut' }
  | { readonly kind: 'never' };

/** Token counts as a model reports them. */
export interface Usage {
  readonly input: number;
  readonly output: number;
}

/** One scripted answer to one request. Made by the functions below; `with…` methods answer with a changed copy. */
export class Reply {
  constructor(
    readonly parts: readonly Part[],
    readonly options: {
      readonly status?: number;
      readonly headers?: Record<string, string>;
      readonly body?: string;
      readonly usage?: Usage;
      readonly finish?: string;
      readonly bytewise?: boolean;
    } = {},
  ) {}

  /** Reports these token counts at its end. */
  withUsage(input: number, output: number): Reply {
    return new Reply(this.parts, { ...this.options, usage: { input, output } });
  }

  /** Ends with this `finish_reason` instead of the one that its parts ask for. */
  withFinish(finish: string): Reply {
    return new Reply(this.parts, { ...this.options, finish });
  }

  /** Writes its body in writes of one byte, so that every multibyte character is split. */
  bytewise(): Reply {
    return new Reply(this.parts, { ...this.options, bytewise: true });
  }
}

/** One answer made of several: `reply(think('hm'), say('Hi'), callTool('x', {}))`. Options of the last one win. */
export function reply(...replies: Reply[]): Reply {
  const options = replies.reduce((all, one) => Object.assign(all, one.options), {});
  return new Reply(
    replies.flatMap((one) => one.parts),
    options,
  );
}

/** Text, one chunk for each string. A gate among them holds the answer at that point. */
export function say(...chunks: (string | Gate)[]): Reply {
  return new Reply(
    chunks.map((chunk) => (chunk instanceof Gate ? { kind: 'gate', gate: chunk } : { kind: 'text', text: chunk })),
  );
}

/** Reasoning (`reasoning_content`), one chunk for each string. */
export function think(...chunks: string[]): Reply {
  return new Reply(chunks.map((text) => ({ kind: 'reasoning', text })));
}

/** A call of a tool; its arguments arrive in three pieces. `id` replaces the id that the server would make. */
export function callTool(name: string, input: unknown, id?: string): Reply {
  return callToolRaw(name, thirds(JSON.stringify(input)), id);
}

/** A call whose arguments arrive exactly as these pieces; they need not be JSON. */
export function callToolRaw(name: string, pieces: readonly string[], id?: string): Reply {
  return new Reply([{ kind: 'tool', name, pieces, ...(id === undefined ? {} : { id }) }]);
}

/** Holds the answer here until the test opens the gate. */
export function holdAt(gate: Gate): Reply {
  return new Reply([{ kind: 'gate', gate }]);
}

/** Refuses the request with this status, as a provider does, and the message in an OpenAI-style error. */
export function refuse(status: number, message = 'refused by the test', headers: Record<string, string> = {}): Reply {
  const body = JSON.stringify({ error: { message, type: 'test_error', param: null, code: null } });
  return new Reply([], { status, headers, body });
}

/** Answers with this status and exactly this body. */
export function answerRaw(status: number, body: string, headers: Record<string, string> = {}): Reply {
  return new Reply([], { status, headers, body });
}

/** Cuts the connection at this point of the answer. */
export function cut(): Reply {
  return new Reply([{ kind: 'cut' }]);
}

/** Writes this text into the event stream as it is: broken JSON, another provider's comment, anything. */
export function raw(text: string): Reply {
  return new Reply([{ kind: 'raw', text }]);
}

/** Says nothing more, and never ends, until the client goes away. */
export function never(): Reply {
  return new Reply([{ kind: 'never' }]);
}

function thirds(text: string): string[] {
  const third = Math.max(1, Math.ceil(text.length / 3));
  return [text.slice(0, third), text.slice(third, 2 * third), text.slice(2 * third)].filter((piece) => piece !== '');
}
