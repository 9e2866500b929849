import { createAnthropic } from '@ai-sdk/anthropic';
import { createGoogle } from '@ai-sdk/google';
import { createOpenAI } from '@ai-sdk/openai';
import { createOpenAICompatible, type MetadataExtractor } from '@ai-sdk/openai-compatible';
import type { LanguageModelV4, LanguageModelV4CallOptions } from '@ai-sdk/provider';
import type { AgentModel } from '@turnkeep/shared/contract/agent';
import { createDemoModel } from './demo-model.js';
import { type Redact, TurnFailure } from './failure.js';

/**
 * Where a provider lives when the agent names no `baseUrl`. Always given explicitly: the SDK would otherwise read
 * OPENAI_BASE_URL and the like from the worker's environment, which belongs to the operator and not to the agent.
 */
const DEFAULT_BASE_URLS: Partial<Record<AgentModel['provider'], string>> = {
  openai: 'https://api.openai.com/v1',
  anthropic: 'https://api.anthropic.com/v1',
  google: 'https://generativelanguage.googleapis.com/v1beta',
};

export interface ModelAccess {
  /** The decrypted credential; absent for a model that needs none. */
  apiKey?: string | undefined;
  /** The egress's fetch. (contract section 1, ALLOW_PRIVATE_NETWORK) */
  fetch: typeof globalThis.fetch;
}

/**
 * The model that an agent names, behind the AI SDK's provider interface (contract section 3). Makes no request yet.
 * `openai` uses the Responses API, without storage at OpenAI. Errors: `TurnFailure` `model_refused` where the
 * configuration has no address.
 */
export function createModel(config: AgentModel, access: ModelAccess): TurnModel {
  return new TurnModel(providerModel(config, access), access.apiKey === undefined ? [] : [access.apiKey]);
}

/** A provider's model that knows its secrets, so that no failure can carry them to a user. */
export class TurnModel implements LanguageModelV4 {
  readonly specificationVersion = 'v4';
  readonly #inner: LanguageModelV4;
  readonly #secrets: readonly string[];

  constructor(inner: LanguageModelV4, secrets: readonly string[] = []) {
    this.#inner = inner;
    this.#secrets = secrets.filter((secret) => secret !== '');
  }

  get provider(): string {
    return this.#inner.provider;
  }

  get modelId(): string {
    return this.#inner.modelId;
  }

  get supportedUrls(): LanguageModelV4['supportedUrls'] {
    return this.#inner.supportedUrls;
  }

  doGenerate(options: LanguageModelV4CallOptions): ReturnType<LanguageModelV4['doGenerate']> {
    return this.#inner.doGenerate(options);
  }

  doStream(options: LanguageModelV4CallOptions): ReturnType<LanguageModelV4['doStream']> {
    return this.#inner.doStream(options);
  }

  /** Takes the credential out of a text, also where a provider repeats only the beginning of it. */
  readonly redact: Redact = (text) =>
    this.#secrets.reduce(
      (clean, secret) => withoutBeginning(clean.replaceAll(secret, '[credential]'), secret.slice(0, BEGINNING)),
      text,
    );
}

/** Characters of a key that are no longer shown: the beginnings of keys that all share (`sk-`) are shorter. */
const BEGINNING = 8;

function withoutBeginning(text: string, beginning: string): string {
  if (beginning.length < BEGINNING) return text;
  const literal = beginning.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
  return text.replace(new RegExp(`${literal}[^\\s"'\`,;<>()[\\]{}]*`, 'g'), '[credential]');
}

/**
 * Names the place that a provider's call ids belong to: one provider at one address. An id goes back only to where it came
 * from (contract section 3).
 */
export function providerKey(config: AgentModel): string {
  return `${config.provider} ${config.baseUrl ?? DEFAULT_BASE_URLS[config.provider] ?? ''}`.trim();
}

/**
 * Which attachments a provider takes as a file; the others reach the model as a note. Images of the four types that every
 * vision model reads, and PDF where the provider's own API has it. Nobody tells whether a model behind an
 * OpenAI-compatible address sees images: it is given them, and says so in a refusal if it cannot.
 */
export function acceptsFile(provider: AgentModel['provider'], mimeType: string): boolean {
  const type = mimeType.split(';')[0]!.trim().toLowerCase();
  const image = ['image/png', 'image/jpeg', 'image/gif', 'image/webp'].includes(type);
  switch (provider) {
    case 'demo':
      return false;
    case 'openai-compatible':
      return image;
    case 'openai':
    case 'anthropic':
      return image || type === 'application/pdf';
    case 'google':
      return (image && type !== 'image/gif') || type === 'application/pdf' || /^(audio|video)\//.test(type);
  }
}

function providerModel(config: AgentModel, access: ModelAccess): LanguageModelV4 {
  if (config.provider === 'demo') return createDemoModel(config.model);
  const baseURL = config.baseUrl ?? DEFAULT_BASE_URLS[config.provider];
  if (baseURL === undefined) throw new TurnFailure('model_refused', "This agent's model has no address (baseUrl).");
  // Never undefined: the SDK would look for a key in the environment.
  const settings = { baseURL, apiKey: access.apiKey ?? '', fetch: withoutEmptyKeys(access.fetch) };
  switch (config.provider) {
    case 'openai':
      return createOpenAI(settings)(config.model);
    case 'anthropic':
      return createAnthropic(settings)(config.model);
    case 'google':
      return createGoogle(settings)(config.model);
    case 'openai-compatible':
      return createOpenAICompatible({
        ...settings,
        name: 'openai-compatible',
        includeUsage: true,
        metadataExtractor: reasoningField,
      })(config.model);
  }
}

/**
 * Notes whether an OpenAI-compatible server streams its reasoning as `reasoning_content`. Such servers (DeepSeek, Kimi, GLM)
 * want it back within a tool loop, under that name; others refuse a field that they don't know. `runStep` reads the note.
 */
const reasoningField: MetadataExtractor = {
  extractMetadata: () => Promise.resolve(undefined),
  createStreamExtractor() {
    let seen = false;
    return {
      processChunk(chunk) {
        seen ||= speaksReasoningContent(chunk);
      },
      buildMetadata: () => (seen ? { turnkeep: { reasoningContent: true } } : undefined),
    };
  },
};

function speaksReasoningContent(chunk: unknown): boolean {
  const delta = (chunk as { choices?: { delta?: { reasoning_content?: unknown } }[] } | null)?.choices?.[0]?.delta;
  return typeof delta?.reasoning_content === 'string';
}

/** Leaves out the header of a key that is not there: some local servers refuse an empty one. */
function withoutEmptyKeys(fetch: typeof globalThis.fetch): typeof globalThis.fetch {
  return (input, init) => {
    const headers = new Headers(init?.headers);
    for (const name of ['authorization', 'x-api-key', 'x-goog-api-key']) {
      if (/^(bearer)?\s*$/i.test(headers.get(name) ?? '-')) headers.delete(name);
    }
    return fetch(input, { ...init, headers });
  };
}
