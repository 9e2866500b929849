import type { LanguageModelV4CallOptions, LanguageModelV4Prompt } from '@ai-sdk/provider';
import { takeCodePoints } from '@turnkeep/shared/contract/text';
import { isJsonObject, type JsonObject, type JsonValue } from './json.js';

/** One part of the demo model's answer, in order. */
export type DemoBeat =
  | { type: 'reasoning' | 'text'; text: string }
  | { type: 'call'; callId: string; toolName: string; input: JsonObject };

type OfferedTools = NonNullable<LanguageModelV4CallOptions['tools']>;
type FunctionTool = Extract<OfferedTools[number], { type: 'function' }>;

/** What a user may say, by which of the tools on offer the demo model answers it, and how it tells of that. */
const WISHES: { says: RegExp; tool: RegExp; thought: string; prose: string; example: string; shows: string }[] = [
  {
    says: /weather|forecast|temperature/i,
    tool: /weather/i,
    thought: 'The user asks about the weather. There is a tool for that, so I should not guess.',
    prose: 'Let me look that up.',
    example: 'What is the weather in Paris?',
    shows: 'makes me call a tool over HTTP.',
  },
  {
    says: /approv|permission|delete|e-?mail|postcard/i,
    tool: /approv|delete|remove|send|mail|publish/i,
    thought: 'This needs a tool that a person may have to approve first.',
    prose: 'I will call a tool for this. If it needs your approval, a card will ask you.',
    example: 'Send a postcard to Ada',
    shows: 'needs your approval first: approve or deny it, today or in a week.',
  },
  {
    says: /ask me|question|choose|quiz/i,
    tool: /ask|question/i,
    thought: 'The user wants to be asked something.',
    prose: 'Gladly.',
    example: 'Ask me a question',
    shows: 'shows a question card that waits for your answer.',
  },
  {
    says: /delegate|research|sub-?agent|helper/i,
    tool: /delegate|research|agent|helper/i,
    thought: 'Another agent can do this part.',
    prose: 'I hand this to another agent.',
    example: 'Let the researcher find the weather in Oslo',
    shows: 'hands the work to a sub-agent; *let the researcher send a postcard to Ada* has its approval inside.',
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
  if (tool) {
    const told = WISHES.find((one) => one.tool.test(tool.name));
    return callTool(tool, said, countCalls(prompt), told);
  }
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
        : `${introduce(result?.toolName ?? 'the tool')}: ${takeCodePoints(shown, 600)}\n\nI am only a script, so I leave it at that.`,
    },
  ];
}

function introduce(toolName: string): string {
  return /^ask/i.test(toolName) ? 'You answered' : `Here is what ${toolName} says`;
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
        ...WISHES.filter(({ tool }) => tools.some(({ name }) => tool.test(name))).map(
          ({ example, shows }) => `- *${example}* ${shows}`,
        ),
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

const QUESTION = 'Which season do you like best?';
const CHOICES = ['Spring', 'Summer', 'Autumn', 'Winter'];

/** Plausible arguments for a JSON Schema's properties: a place or a name where one is asked for, else the user's own words. */
function argumentsFor(schema: JsonObject, said: string): JsonObject {
  const properties = isJsonObject(schema.properties) ? schema.properties : {};
  if ('question' in properties) return { question: QUESTION, ...('choices' in properties ? { choices: CHOICES } : {}) };
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
      if (/city|place|location|where/i.test(name)) return namedAfter(/\b(?:in|for|at)\s+/u, said) ?? 'Berlin';
      if (/^(to|whom|recipient)$/i.test(name)) return namedAfter(/\b(?:to|for)\s+/u, said) ?? 'a friend';
      return /^text$/i.test(name) ? 'Greetings from the demo model.' : said;
  }
}

/** The capitalised words after one of these; undefined where there are none. */
function namedAfter(words: RegExp, said: string): string | undefined {
  return new RegExp(`${words.source}(\\p{Lu}[\\p{L}'-]*(?:\\s\\p{Lu}[\\p{L}'-]*)*)`, 'u').exec(said)?.[1];
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
