import type { LanguageModelV4CallOptions, LanguageModelV4Prompt } from '@ai-sdk/provider';
import { takeCodePoints } from '@turnkeep/shared/contract/text';
import { isJsonObject, type JsonObject, type JsonValue } from './json.js';

/** One part of the demo model's answer, in order. */
export type DemoBeat =
  | { type: 'reasoning' | 'text'; text: string }
  | { type: 'call'; callId: string; toolName: string; input: JsonObject };

type OfferedTools = NonNullable<LanguageModelV4CallOptions['tools']>;
type FunctionTool = Extract<OfferedTools[number], { type: 'function' }>;

/** What a user may say, and by which of the tools on offer the demo model answers it. */
const WISHES: { says: RegExp; tool: RegExp; thought: string; prose: string }[] = [
  {
    says: /weather|forecast|temperature/i,
    tool: /weather/i,
    thought: 'The user asks about the weather. There is a tool for that, so I should not guess.',
    prose: 'Let me look that up.',
  },
  {
    says: /approv|permission|delete|e-?mail/i,
    tool: /approv|delete|remove|send|mail|publish/i,
    thought: 'This needs a tool that a person may have to approve first.',
    prose: 'I will call a tool for this. If it needs your approval, a card will ask you.',
  },
  {
    says: /ask me|question|choose|quiz/i,
    tool: /ask|question/i,
    thought: 'The user wants to be asked something.',
    prose: 'Gladly.',
  },
  {
    says: /delegate|research|sub-?agent|helper/i,
    tool: /delegate|research|agent|helper/i,
    thought: 'Another agent can do this part.',
    prose: 'I hand this to another agent.',
  },
];

/**
 * The answer to a conversation: depends on nothing but the messages and the tools that any model would be given. Calls one
 * tool at a time, and never a second one right after a result.
 */
export function demoAnswer(prompt: LanguageModelV4Prompt, tools: OfferedTools): DemoBeat[] {
  const last = prompt.at(-1);
  if (last?.role === 'tool') return afterResult(last.content);
  const said = lastUserText(prompt);
  const offered = tools.filter((tool): tool is FunctionTool => tool.type === 'function');
  const wish = WISHES.find(({ says }) => says.test(said));
  const tool =
    offered.find(({ name }) => said.toLowerCase().includes(name.toLowerCase())) ??
    (wish && offered.find(({ name }) => wish.tool.test(name)));
  if (tool) return callTool(tool, said, countCalls(prompt), wish);
  if (/\blong\b|story|essay/i.test(said)) return longAnswer();
  return introduction(said, offered);
}

function callTool(tool: FunctionTool, said: string, callsSoFar: number, wish?: (typeof WISHES)[number]): DemoBeat[] {
  return [
    { type: 'reasoning', text: wish?.thought ?? `The user names the tool ${tool.name}, so I call it.` },
    { type: 'text', text: wish?.prose ?? `I call ${tool.name}.` },
    {
      type: 'call',
      callId: `demo-${callsSoFar + 1}`,
      toolName: tool.name,
      input: argumentsFor(tool.inputSchema as JsonObject, said),
    },
  ];
}

function afterResult(content: Extract<LanguageModelV4Prompt[number], { role: 'tool' }>['content']): DemoBeat[] {
  const result = content.find((part) => part.type === 'tool-result');
  const output = result?.output;
  const shown =
    output === undefined ? '' : 'value' in output ? asText(output.value as JsonValue) : (output.reason ?? '');
  const failed = output?.type === 'error-text' || output?.type === 'error-json' || output?.type === 'execution-denied';
  return [
    { type: 'reasoning', text: failed ? 'The tool did not work out. I say so plainly.' : 'The tool has answered.' },
    {
      type: 'text',
      text: failed
        ? `That did not work: ${takeCodePoints(shown, 300)}`
        : `Here is what ${result?.toolName ?? 'the tool'} says: ${takeCodePoints(shown, 600)}\n\nI am only a script, so I leave it at that.`,
    },
  ];
}

function introduction(said: string, tools: FunctionTool[]): DemoBeat[] {
  const quoted = takeCodePoints(said.replace(/\s+/g, ' ').trim(), 80);
  const names = tools.map(({ name }) => `\`${name}\``).join(', ');
  return [
    { type: 'reasoning', text: 'I am a scripted model: I look for words that I know and explain what one can try.' },
    {
      type: 'text',
      text: [
        `You said: “${quoted}”. I am the demo model, a script inside Turnkeep, so that you can try everything without a key.`,
        '',
        'Things to try:',
        '',
        '- *What is the weather in Paris?* makes me call a tool over HTTP.',
        '- *Tell me a long story* gives you time to press Stop, to reload the page, or to send more messages into the queue.',
        '- Close the tab while I am answering: the turn goes on, and the answer is here when you come back.',
        '',
        names === '' ? 'No tool is offered to me at the moment.' : `The tools that I am offered: ${names}.`,
      ].join('\n'),
    },
  ];
}

function longAnswer(): DemoBeat[] {
  const chapters = Array.from({ length: 24 }, (_, index) => {
    const keeper = ['the first', 'the second', 'the third', 'the fourth'][index % 4];
    return `${index + 1}. On ${keeper} watch the keeper turned the key, wrote a line into the log, and looked out. Whoever came back later found every line in its place.`;
  });
  return [
    { type: 'reasoning', text: 'A long answer it is; there is time enough to stop me.' },
    { type: 'text', text: `The keeper of the turns\n\n${chapters.join('\n\n')}` },
  ];
}

/** Plausible arguments for a JSON Schema's properties: a place where one is asked for, else the user's own words. */
function argumentsFor(schema: JsonObject, said: string): JsonObject {
  const properties = isJsonObject(schema.properties) ? schema.properties : {};
  return Object.fromEntries(
    Object.entries(properties).map(([name, property]) => [name, argument(name, property, said)]),
  );
}

function argument(name: string, property: JsonValue, said: string): JsonValue {
  const { type, enum: choices } = isJsonObject(property) ? property : {};
  if (Array.isArray(choices) && choices[0] !== undefined) return choices[0];
  switch (type) {
    case 'number':
    case 'integer':
      return 1;
    case 'boolean':
      return true;
    case 'array':
      return [];
    case 'object':
      return {};
    default:
      return /city|place|location|where/i.test(name) ? placeIn(said) : said;
  }
}

/** The capitalised words after 'in', 'for' or 'at'; else a city that has weather. */
function placeIn(said: string): string {
  return /\b(?:in|for|at)\s+(\p{Lu}[\p{L}'-]*(?:\s\p{Lu}[\p{L}'-]*)*)/u.exec(said)?.[1] ?? 'Berlin';
}

function lastUserText(prompt: LanguageModelV4Prompt): string {
  const message = prompt.findLast(({ role }) => role === 'user');
  if (message?.role !== 'user') return '';
  return message.content.map((part) => (part.type === 'text' ? part.text : '')).join(' ');
}

function countCalls(prompt: LanguageModelV4Prompt): number {
  return prompt
    .filter((message) => message.role === 'assistant')
    .flatMap(({ content }) => content)
    .filter(({ type }) => type === 'tool-call').length;
}

function asText(value: JsonValue): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}
