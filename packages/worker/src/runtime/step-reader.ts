import type { SharedV4ProviderMetadata } from '@ai-sdk/provider';
import { newId } from '@turnkeep/shared/contract/ids';
import type { AssistantModelMessage, LanguageModelStreamPart, ModelMessage } from 'ai';
import { wireCallId, wireToolName } from './call-id.js';
import { DeltaMender, splitDelta } from './delta.js';
import { earlyUsage } from './early-usage.js';
import { broken } from './failure.js';
import { isJsonObject, type JsonValue, storableJson } from './json.js';
import type { StepOutcome, StepPart, StepRequest, StepUsage } from './step.js';

type SdkPart = LanguageModelStreamPart;
type SdkToolCall = Extract<SdkPart, { type: 'tool-call' }>;
type ToolCallPart = Extract<StepPart, { type: 'tool-call' }>;
type Kind = 'text' | 'reasoning';
type Content = Exclude<AssistantModelMessage['content'], string>;

interface Block {
  kind: Kind;
  id: string;
  text: string;
  mender: DeltaMender;
  metadata: SharedV4ProviderMetadata | undefined;
}

interface Call {
  callId: string;
  toolName: string;
  mender: DeltaMender;
  complete: ToolCallPart | undefined;
  metadata: SharedV4ProviderMetadata | undefined;
  wireId: string;
}

/** Turns the AI SDK's parts of one request into Turnkeep's, and keeps what the run's context needs of them. */
export class StepReader {
  /** Set once `onPart` has thrown: that error is the caller's own and not the model's. */
  consumerFault: { error: unknown } | undefined;
  readonly #request: StepRequest;
  readonly #said: (Block | Call)[] = [];
  readonly #openBlocks = new Map<string, Block>();
  readonly #openCalls = new Map<string, Call>();
  readonly #usedIds: Set<string>;
  readonly #withheld: ToolCallPart[] = [];
  #usage: StepUsage | undefined;
  #finish: { reason: string; usage: StepUsage; metadata: SharedV4ProviderMetadata | undefined } | undefined;

  constructor(request: StepRequest) {
    this.#request = request;
    this.#usedIds = callIdsOf(request.messages);
  }

  /** Throws what the stream reports as an error, as the SDK gives it. */
  async take(part: SdkPart): Promise<void> {
    switch (part.type) {
      case 'text-start':
      case 'reasoning-start':
        return this.#startBlock(part.type === 'text-start' ? 'text' : 'reasoning', part.id, part.providerMetadata);
      case 'text-delta':
      case 'reasoning-delta':
        return this.#growBlock(blockKey(part.type, part.id), part.text, part.providerMetadata);
      case 'text-end':
      case 'reasoning-end':
        return this.#endBlock(blockKey(part.type, part.id), part.providerMetadata);
      case 'tool-input-start':
        return part.providerExecuted ? undefined : this.#startCall(part.id, part.toolName).then(() => undefined);
      case 'tool-input-delta':
        return this.#growCall(part.id, part.delta);
      case 'tool-call':
        return part.providerExecuted ? undefined : this.#completeCall(part);
      case 'model-call-end':
        return this.#end(part);
      case 'raw':
        return this.#count(earlyUsage(part.rawValue, this.#usage));
      case 'error':
        throw part.error;
    }
  }

  /** What the request came to. Throws `model_stream_broken` where the stream stopped without a proper end. */
  outcome(): StepOutcome {
    if (this.#finish === undefined || this.#finish.reason === 'interrupted') {
      throw broken('The connection to the model broke before the answer was complete.');
    }
    if (this.#finish.reason === 'error') throw broken('The model broke off its answer with an error.');
    const calls = this.#said.filter((item): item is Call => 'callId' in item && item.complete !== undefined);
    return {
      usage: this.#finish.usage,
      messages: this.#messages(),
      finishReason: this.#finish.reason,
      providerCallIds: Object.fromEntries(calls.map(({ callId, wireId }) => [callId, wireId])),
    };
  }

  async #startBlock(kind: Kind, sdkId: string, metadata: SharedV4ProviderMetadata | undefined): Promise<void> {
    const block: Block = { kind, id: newId(), text: '', mender: new DeltaMender(), metadata };
    this.#openBlocks.set(blockKey(kind, sdkId), block);
    this.#said.push(block);
    await this.#emit({ type: `${kind}-start`, id: block.id });
  }

  async #growBlock(key: string, delta: string, metadata: SharedV4ProviderMetadata | undefined): Promise<void> {
    const block = this.#openBlocks.get(key);
    if (block === undefined) return;
    block.metadata = metadata ?? block.metadata;
    await this.#emitText(block, block.mender.push(delta));
  }

  async #endBlock(key: string, metadata: SharedV4ProviderMetadata | undefined): Promise<void> {
    const block = this.#openBlocks.get(key);
    if (block === undefined) return;
    this.#openBlocks.delete(key);
    block.metadata = metadata ?? block.metadata;
    await this.#emitText(block, block.mender.end());
    await this.#emit({ type: `${block.kind}-end`, id: block.id });
  }

  async #emitText(block: Block, text: string): Promise<void> {
    block.text += text;
    for (const delta of splitDelta(text)) await this.#emit({ type: `${block.kind}-delta`, id: block.id, delta });
  }

  async #startCall(sdkId: string, sdkName: string): Promise<Call> {
    const toolName = wireToolName(sdkName);
    const callId = this.#request.newCallId();
    const wireId = wireCallId(callId, sdkId, this.#usedIds);
    const call: Call = {
      callId,
      toolName,
      mender: new DeltaMender(),
      complete: undefined,
      metadata: undefined,
      wireId,
    };
    this.#openCalls.set(sdkId, call);
    this.#said.push(call);
    await this.#emit({ type: 'tool-input-start', callId, toolName });
    return call;
  }

  async #growCall(sdkId: string, piece: string): Promise<void> {
    const call = this.#openCalls.get(sdkId);
    if (call === undefined) return;
    const { callId } = call;
    for (const delta of splitDelta(call.mender.push(piece))) {
      await this.#emit({ type: 'tool-input-delta', callId, delta });
    }
  }

  async #completeCall(part: SdkToolCall): Promise<void> {
    const call = this.#openCalls.get(part.toolCallId) ?? (await this.#startCall(part.toolCallId, part.toolName));
    this.#openCalls.delete(part.toolCallId);
    const { callId, toolName } = call;
    const { input, invalid } = this.#readInput(part);
    call.metadata = part.providerMetadata;
    call.complete = { type: 'tool-call', callId, toolName, input, ...(invalid === undefined ? {} : { invalid }) };
    // Of a stream that was cut, the SDK completes what there is. So arguments that may be a torso wait for the proper end,
    // and later calls behind them.
    const torso = invalid !== undefined || Object.keys(input).length === 0;
    if (torso || this.#withheld.length > 0) this.#withheld.push(call.complete);
    else await this.#emit(call.complete);
  }

  #readInput({ input, toolName }: SdkToolCall): Pick<ToolCallPart, 'input' | 'invalid'> {
    if (!this.#request.tools.some(({ name }) => name === toolName)) {
      return { input: {}, invalid: `There is no tool named ${wireToolName(toolName)}.` };
    }
    if (typeof input === 'string' && input.trim() === '') return { input: {} };
    const clean = storableJson(input as JsonValue);
    if (isJsonObject(clean)) return { input: clean };
    return { input: {}, invalid: 'The arguments are not a JSON object, so the tool was not called.' };
  }

  async #end(part: Extract<SdkPart, { type: 'model-call-end' }>): Promise<void> {
    const { inputTokens = this.#usage?.inputTokens, outputTokens = this.#usage?.outputTokens } = part.usage;
    const usage = { inputTokens: countOf(inputTokens), outputTokens: countOf(outputTokens) };
    this.#finish = { reason: part.finishReason, usage, metadata: part.providerMetadata };
    this.#count(usage);
    if (part.finishReason === 'interrupted' || part.finishReason === 'error') return;
    for (const call of this.#withheld) await this.#emit(call);
  }

  #count(usage: StepUsage | undefined): void {
    if (usage === undefined) return;
    this.#usage = { inputTokens: countOf(usage.inputTokens), outputTokens: countOf(usage.outputTokens) };
    this.#request.onUsage?.(this.#usage);
  }

  async #emit(part: StepPart): Promise<void> {
    try {
      await this.#request.onPart(part);
    } catch (error) {
      this.consumerFault = { error };
      throw error;
    }
  }

  #messages(): ModelMessage[] {
    const content = this.#said.flatMap(
      (item): Content => ('callId' in item ? callContent(item) : this.#blockContent(item)),
    );
    const says = content.some(({ type }) => type !== 'reasoning');
    return says ? [{ role: 'assistant', content }] : [];
  }

  /**
   * Blank text is left out, since Anthropic refuses it, unless it carries a signature. Reasoning goes back where the provider
   * signed it, or speaks `reasoning_content` itself (see `model.ts`): a provider that does neither refuses or ignores it.
   */
  #blockContent({ kind, text, metadata }: Block): Content {
    const wanted = metadata !== undefined || (kind === 'text' ? text.trim() !== '' : this.#wantsReasoning());
    if (!wanted) return [];
    return [{ type: kind, text, ...(metadata === undefined ? {} : { providerOptions: metadata }) }];
  }

  #wantsReasoning(): boolean {
    return this.#finish?.metadata?.turnkeep?.reasoningContent === true;
  }
}

function callContent({ wireId, complete, metadata }: Call): Content {
  if (complete === undefined) return [];
  const { toolName, input } = complete;
  const providerOptions = metadata === undefined ? {} : { providerOptions: metadata };
  return [{ type: 'tool-call', toolCallId: wireId, toolName, input, ...providerOptions }];
}

/** Text and reasoning blocks of one response may share an id. */
function blockKey(type: string, sdkId: string): string {
  return `${type.split('-')[0]} ${sdkId}`;
}

function callIdsOf(messages: ModelMessage[]): Set<string> {
  const calls = messages.flatMap(({ role, content }) =>
    role === 'assistant' && typeof content !== 'string' ? content.filter((part) => part.type === 'tool-call') : [],
  );
  return new Set(calls.map(({ toolCallId }) => toolCallId));
}

/** No request costs more tokens than this; a provider that says so is not believed. Sums of them stay exact. */
const MOST_TOKENS = 1_000_000_000_000;

/** A provider's count as a whole number that is not negative. */
function countOf(tokens: number | undefined): number {
  if (tokens === undefined || Number.isNaN(tokens)) return 0;
  return Math.min(Math.max(Math.floor(tokens), 0), MOST_TOKENS);
}
