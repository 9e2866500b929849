import type { AgentModel } from '@turnkeep/shared/contract/agent';
import { newId } from '@turnkeep/shared/contract/ids';
import type { ModelMessage } from 'ai';
import { createEgress, type Egress } from '../../src/runtime/egress.js';
import { TurnFailure } from '../../src/runtime/failure.js';
import { createModel } from '../../src/runtime/model.js';
import { runStep, type StepOutcome, type StepPart, type StepRequest, type StepUsage } from '../../src/runtime/step.js';

export const API_KEY = 'sk-test-7f3a9c51e0d84b6f';

export const weatherTool = {
  name: 'get_weather',
  description: 'The weather of a city',
  inputSchema: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
};

/** What a step gave: its parts in order, and either its outcome or what it threw. */
export interface Spoken {
  parts: StepPart[];
  usage: StepUsage | undefined;
  outcome: StepOutcome | undefined;
  error: unknown;
}

/** An egress for the suite in which this is called, which may reach loopback; closed after it. */
export function useEgress(): Egress {
  const egress = createEgress({ allowPrivateNetwork: true });
  after(() => egress.close());
  return egress;
}

/** One for which no name resolves, so that no test asks a name server. */
export function useNamelessEgress(): Egress {
  const egress = createEgress({
    allowPrivateNetwork: false,
    resolveName: (_hostname, _options, callback) =>
      process.nextTick(callback, Object.assign(new Error('no such name'), { code: 'ENOTFOUND' }), []),
  });
  after(() => egress.close());
  return egress;
}

export function modelAt(egress: Egress, baseUrl: string, provider: AgentModel['provider'] = 'openai-compatible') {
  return createModel({ provider, model: 'test-model', baseUrl }, { apiKey: API_KEY, fetch: egress.fetch });
}

export function user(text: string): ModelMessage {
  return { role: 'user', content: text };
}

/** Runs one step and never throws. */
export async function speak(request: Pick<StepRequest, 'model' | 'messages'> & Partial<StepRequest>): Promise<Spoken> {
  const parts: StepPart[] = [];
  let usage: StepUsage | undefined;
  const settled = await runStep({
    instructions: 'Be kind.',
    tools: [weatherTool],
    abortSignal: new AbortController().signal,
    newCallId: () => `call_${newId()}`,
    onUsage: (reported) => {
      usage = reported;
    },
    ...request,
    onPart: async (part) => {
      parts.push(part);
      await request.onPart?.(part);
    },
  }).then(
    (outcome) => ({ outcome, error: undefined }),
    (error: unknown) => ({ outcome: undefined, error }),
  );
  return { parts, usage, ...settled };
}

/** The joined deltas of one kind. */
export function textOf({ parts }: Spoken, type: 'text-delta' | 'reasoning-delta' | 'tool-input-delta' = 'text-delta') {
  return parts.map((part) => (part.type === type ? part.delta : '')).join('');
}

export function callsOf({ parts }: Spoken) {
  return parts.filter((part) => part.type === 'tool-call');
}

/** The outcome of a step that has to succeed. */
export function outcomeOf(spoken: Spoken): StepOutcome {
  if (spoken.outcome === undefined) throw new Error('the step failed', { cause: spoken.error });
  return spoken.outcome;
}

/** The failure of a step that has to fail, as a user sees it. */
export function failureOf({ error }: Spoken): TurnFailure {
  if (error instanceof TurnFailure) return error;
  throw new Error('the step did not fail as a turn fails', { cause: error });
}
