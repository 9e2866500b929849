import type { Answer } from '@turnkeep/shared/chat/resume';
import { newId } from '@turnkeep/shared/contract/ids';
import type { Delegates } from './checkpoint.js';
import { listServers } from './context.js';
import { type Batch, type BatchCall, type Frame, newFrame } from './frame.js';
import type { Output } from './output.js';
import type { RunningTurn } from './running-turn.js';
import type { Egress } from './runtime/egress.js';
import { TurnFailure } from './runtime/failure.js';
import { callHttpTool } from './runtime/http-tool.js';
import type { McpClients } from './runtime/mcp.js';
import { providerKey, type TurnModel } from './runtime/model.js';
import { runStep, type StepOutcome, type StepUsage } from './runtime/step.js';
import { type ToolResult, toolMessage } from './runtime/tool-output.js';
import { findTool, offeredTools, questionFault, type Tool, waitsFor } from './toolbox.js';
import { type CallEnd, Voice } from './voice.js';

/** What the loop needs of the execution that it runs in. */
export interface LoopHost {
  turn: RunningTurn;
  output: Output;
  egress: Egress;
  mcp: McpClients;
  delegates: Delegates;
  openModel(frame: Frame): Promise<TurnModel>;
  /**
   * Counts a model request of the run, and closes steering before the last.
   * @throws StepLimitReached where the run has none left
   */
  takeStep(): Promise<void>;
  /** True where the run has no model request left. */
  isLastStep(): boolean;
  /** The next number of a call of this execution. */
  nextOrdinal(): number;
  /** Notes what a model request has cost so far; the sum is recorded. */
  meter(): (usage: StepUsage) => void;
  /** Around the root's steps. */
  stepStarted(): void;
  stepFinished(usage: StepUsage): void;
  /** All that was said and called is on record; then calls may run. */
  recorded(): Promise<void>;
  point(name: 'before-model' | 'after-model' | 'before-tools' | 'after-tools'): Promise<void> | void;
  /** The boundary after a step of the root: steered messages are appended to the frame's context. */
  boundary(frame: Frame): Promise<void>;
}

/** The run has made all the model requests that its limits permit, and has calls or a delegate outstanding. */
export class StepLimitReached extends Error {}

/** What an agent came to: its last answer, or calls that wait for a person. */
export type Advance = 'answered' | 'waiting';

const NOT_RUN = 'Not run: the turn reached its step limit.';
const NO_ANSWERS: ReadonlyMap<string, Answer> = new Map();
const MAX_DEPTH = 3;

/**
 * Runs an agent until it has answered or waits for a person (contract, sections 3 and 5): steps of a model request and its
 * tool calls. The same for the agent itself and for its delegates, one inside the other; a frame that waited goes on
 * where it was, with the answers that were given.
 */
export async function advance(
  host: LoopHost,
  frame: Frame,
  answers: ReadonlyMap<string, Answer> = NO_ANSWERS,
): Promise<Advance> {
  const voice = new Voice(host.output, frame);
  for (;;) {
    if (frame.batch) {
      await runBatch(host, frame, frame.batch, voice, answers);
      if (frame.batch.calls.some((call) => call.result === null)) return 'waiting';
      closeBatch(frame, frame.batch);
      if (isRoot(frame)) await host.boundary(frame);
    }
    await step(host, frame, voice);
    if (!frame.batch) return 'answered';
  }
}

function isRoot({ path }: Frame): boolean {
  return path.length === 0;
}

function closeBatch(frame: Frame, { calls, providerCallIds }: Batch): void {
  const results = calls.flatMap((call) => call.result ?? []);
  frame.messages.push(toolMessage(results, providerCallIds, frame.config.limits.maxToolOutputChars));
  frame.batch = null;
}

/** One model request. Its calls, if it made any, are the frame's batch then. */
async function step(host: LoopHost, frame: Frame, voice: Voice): Promise<void> {
  await host.takeStep();
  host.turn.assertRunning();
  await host.point('before-model');
  if (isRoot(frame)) host.stepStarted();
  const calls: BatchCall[] = [];
  const spent = host.meter();
  frame.said = '';
  const outcome = await runStep({
    model: await host.openModel(frame),
    instructions: [frame.config.instructions, ...frame.notes].filter((text) => text !== '').join('\n\n'),
    messages: frame.messages,
    tools: offeredTools(frame),
    abortSignal: host.turn.signal,
    newCallId: () => `call_${newId()}`,
    onPart: async (part) => {
      voice.part(part);
      if (part.type === 'text-delta') frame.said += part.delta;
      if (part.type === 'tool-call') calls.push(toBatchCall(part));
      await host.output.recorder.room();
    },
    onUsage: spent,
  });
  spent(outcome.usage);
  await host.point('after-model');
  frame.messages.push(...outcome.messages);
  if (calls.length > 0) await takeCalls(host, frame, voice, calls, outcome);
  if (isRoot(frame) && !frame.batch) host.stepFinished(outcome.usage);
  else if (isRoot(frame)) frame.usage = outcome.usage;
}

function toBatchCall({ callId, toolName, input, invalid }: Omit<BatchCall, 'result' | 'wait' | 'child'>): BatchCall {
  return {
    callId,
    toolName,
    input,
    ...(invalid === undefined ? {} : { invalid }),
    result: null,
    wait: null,
    child: null,
  };
}

async function takeCalls(
  host: LoopHost,
  frame: Frame,
  voice: Voice,
  calls: BatchCall[],
  { providerCallIds, usage }: StepOutcome,
): Promise<void> {
  const key = providerKey(frame.config.model);
  for (const call of calls) voice.call(call, host.nextOrdinal(), { callId: providerCallIds[call.callId] ?? null, key });
  if (host.isLastStep()) {
    for (const call of calls) voice.result(call, NOT_RUN, 'error');
    if (isRoot(frame)) host.stepFinished(usage);
    throw new StepLimitReached();
  }
  frame.batch = { calls, providerCallIds };
  await host.recorded();
}

/**
 * Runs what can run of a batch. What was answered goes first, one after the other in the order of the calls; what has not
 * begun runs side by side. What needs a person is marked so.
 */
async function runBatch(
  host: LoopHost,
  frame: Frame,
  batch: Batch,
  voice: Voice,
  answers: ReadonlyMap<string, Answer>,
): Promise<void> {
  await host.point('before-tools');
  for (const call of batch.calls) {
    const answer = answers.get(call.callId);
    if (call.wait && answer) await takeAnswer(host, frame, voice, call, answer);
    else if (call.child) await runDelegate(host, voice, call, call.child, answers);
  }
  const fresh = batch.calls.filter((call) => !call.result && !call.wait && !call.child);
  await Promise.all(fresh.map((call) => begin(host, frame, voice, call)));
  await host.point('after-tools');
  if (isRoot(frame) && frame.usage) {
    host.stepFinished(frame.usage);
    frame.usage = null;
  }
}

async function begin(host: LoopHost, frame: Frame, voice: Voice, call: BatchCall): Promise<void> {
  if (call.invalid !== undefined) return end(host, voice, call, call.invalid, 'error');
  const tool = findTool(frame, call.toolName);
  if (!tool) return end(host, voice, call, `There is no tool named ${call.toolName}.`, 'error');
  const fault = tool.type === 'question' ? questionFault(call.input) : null;
  if (fault !== null) return end(host, voice, call, fault, 'error');
  call.wait = waitsFor(tool);
  if (call.wait === null) await run(host, frame, voice, call, tool);
}

async function takeAnswer(host: LoopHost, frame: Frame, voice: Voice, call: BatchCall, answer: Answer): Promise<void> {
  call.wait = null;
  if ('answer' in answer) return end(host, voice, call, answer.answer, 'done');
  if (!answer.approved) return end(host, voice, call, denial(answer.reason), 'denied');
  const tool = findTool(frame, call.toolName);
  if (!tool) return end(host, voice, call, `There is no tool named ${call.toolName}.`, 'error');
  voice.begins(call);
  await host.recorded();
  await run(host, frame, voice, call, tool);
}

function denial(reason: string | undefined): string {
  return reason ? `The user denied this call: ${reason}` : 'The user denied this call.';
}

async function run(host: LoopHost, frame: Frame, voice: Voice, call: BatchCall, tool: Tool): Promise<void> {
  host.turn.assertRunning();
  const context = { executionId: host.turn.owner.executionId, toolCallId: call.callId, abortSignal: host.turn.signal };
  switch (tool.type) {
    case 'http': {
      const outcome = await callHttpTool({ tool, input: call.input, egress: host.egress, ...context });
      return end(host, voice, call, outcome.output, outcome.isError ? 'error' : 'done');
    }
    case 'mcp': {
      const outcome = await host.mcp.call(tool.offer, call.input, context);
      return end(host, voice, call, outcome.output, outcome.isError ? 'error' : 'done');
    }
    case 'delegate':
      return delegate(host, frame, voice, call, tool.agentId);
    case 'question':
      throw new Error('a question is answered, not run');
  }
}

/** Begins a delegation: a frame of its own inside the call. */
async function delegate(host: LoopHost, frame: Frame, voice: Voice, call: BatchCall, agentId: string): Promise<void> {
  const agent = host.delegates[agentId];
  if (!agent) return end(host, voice, call, 'That agent does not exist any more.', 'error');
  if (typeof call.input.task !== 'string') return end(host, voice, call, 'The argument task must be a text.', 'error');
  if (frame.path.length >= MAX_DEPTH) return end(host, voice, call, 'Delegation may go no deeper.', 'error');
  const child = newFrame([...frame.path, call.callId], agent.config, [{ role: 'user', content: call.input.task }]);
  await listServers(host, child);
  await runDelegate(host, voice, call, child, NO_ANSWERS);
}

/** Advances a delegate; its last answer is the call's output. A model of its own that fails is an error of the call. */
async function runDelegate(
  host: LoopHost,
  voice: Voice,
  call: BatchCall,
  child: Frame,
  answers: ReadonlyMap<string, Answer>,
): Promise<void> {
  call.child = child;
  try {
    if ((await advance(host, child, answers)) === 'waiting') return;
    end(host, voice, call, child.said, 'done');
  } catch (error) {
    if (!(error instanceof TurnFailure)) throw error;
    end(host, voice, call, error.message, 'error');
  }
  call.child = null;
}

function end(host: LoopHost, voice: Voice, call: BatchCall, output: ToolResult['output'], state: CallEnd): void {
  host.turn.signal.throwIfAborted();
  call.result = { callId: call.callId, toolName: call.toolName, output, isError: state !== 'done' };
  voice.result(call, output, state);
}
