import { setTimeout as sleep } from 'node:timers/promises';
import type {
  LanguageModelV4,
  LanguageModelV4CallOptions,
  LanguageModelV4StreamPart,
  LanguageModelV4Usage,
} from '@ai-sdk/provider';
import { type DemoBeat, demoAnswer } from './demo-script.js';

/** Between two chunks, as a quick hosted model has it. */
const CHUNK_DELAY_MS = 20;

/**
 * A scripted model for newcomers (contract section 3, `demo`): it speaks the same interface as a provider's, sees messages
 * and tools only as any model does, and gives the same answer to the same conversation. It makes no request.
 */
export function createDemoModel(modelId: string, chunkDelayMs = CHUNK_DELAY_MS): LanguageModelV4 {
  return {
    specificationVersion: 'v4',
    provider: 'demo',
    modelId,
    supportedUrls: {},
    doGenerate: () => Promise.reject(new Error('The demo model only streams.')),
    doStream: (options) => Promise.resolve({ stream: ReadableStream.from(play(options, chunkDelayMs)) }),
  };
}

async function* play(options: LanguageModelV4CallOptions, delayMs: number): AsyncGenerator<LanguageModelV4StreamPart> {
  const beats = demoAnswer(options.prompt, options.tools ?? []);
  yield { type: 'stream-start', warnings: [] };
  let chunks = 0;
  for (const [index, beat] of beats.entries()) {
    for (const part of partsOf(beat, String(index))) {
      await sleep(delayMs, undefined, options.abortSignal ? { signal: options.abortSignal } : {});
      chunks += 1;
      yield part;
    }
  }
  const calls = beats.some((beat) => beat.type === 'call');
  const finishReason = { unified: calls ? ('tool-calls' as const) : ('stop' as const), raw: undefined };
  yield { type: 'finish', finishReason, usage: usageOf(options, chunks) };
}

function partsOf(beat: DemoBeat, id: string): LanguageModelV4StreamPart[] {
  if (beat.type === 'call') {
    const input = JSON.stringify(beat.input);
    return [
      { type: 'tool-input-start', id: beat.callId, toolName: beat.toolName },
      ...pieces(input).map((delta) => ({ type: 'tool-input-delta' as const, id: beat.callId, delta })),
      { type: 'tool-input-end', id: beat.callId },
      { type: 'tool-call', toolCallId: beat.callId, toolName: beat.toolName, input },
    ];
  }
  const { type } = beat;
  return [
    { type: `${type}-start`, id },
    ...pieces(beat.text).map((delta) => ({ type: `${type}-delta` as const, id, delta })),
    { type: `${type}-end`, id },
  ];
}

/** A word with the space after it: about what a model's token is. */
function pieces(text: string): string[] {
  return text.match(/\S+\s*|\s+/g) ?? [];
}

function usageOf(options: LanguageModelV4CallOptions, outputTokens: number): LanguageModelV4Usage {
  const inputTokens = pieces(JSON.stringify(options.prompt)).length;
  return {
    inputTokens: { total: inputTokens, noCache: inputTokens, cacheRead: undefined, cacheWrite: undefined },
    outputTokens: { total: outputTokens, text: outputTokens, reasoning: undefined },
  };
}
