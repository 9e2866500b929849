import type { Random } from '../random.js';

/** One answer of the scripted model: so many words, one every `everyMs`, and the tools that it calls then. */
export interface PlannedStep {
  readonly words: number;
  readonly everyMs: number;
  readonly tools: readonly ToolName[];
}

/** `look`: an HTTP tool. `pay`: one that needs an approval. */
export type ToolName = 'look' | 'pay';

const TOOLS: Readonly<Record<string, readonly ToolName[]>> = {
  '': [],
  look: ['look'],
  pay: ['pay'],
  both: ['look', 'pay'],
};

/** Draws the text of a message: its marker, which no other message has, and what the model is to do with it. */
export function newText(marker: string, random: Random, edit?: string): string {
  const more = random.weighted({ 1: 55, 2: 30, 3: 15 });
  const steps = Array.from({ length: Number(more) }, (_, index) => {
    const isLast = index === Number(more) - 1;
    const tools = isLast ? '' : random.weighted({ look: 70, pay: 15, both: 15 });
    return `${random.between(1, 14)}x${random.between(5, 60)}${tools === '' ? '' : `+${tools}`}`;
  });
  return `#m:${marker}#${edit === undefined ? '' : ` #e:${edit}#`} plan ${steps.join(' ')}.`;
}

/** The markers in a text, in their order. */
export function markersOf(text: string): string[] {
  return [...text.matchAll(/#m:([^#]+)#/g)].map((match) => match[1] ?? '');
}

/** The edit that a text comes from; undefined: it was never edited. */
export function editOf(text: string): string | undefined {
  return /#e:([^#]+)#/.exec(text)?.[1];
}

/** Step number `step` of the plan in a text; beyond its end, one word and no tool. */
export function plannedStep(text: string, step: number): PlannedStep {
  const plan = /plan ([^.]*)\./.exec(text)?.[1]?.split(' ')[step] ?? '1x5';
  const [, words, everyMs, tools = ''] = /^(\d+)x(\d+)(?:\+(\w+))?$/.exec(plan) ?? [];
  return { words: Number(words), everyMs: Number(everyMs), tools: TOOLS[tools] ?? [] };
}
