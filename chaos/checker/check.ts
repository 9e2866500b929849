import type { Violation } from '../history.js';
import { accounting, changes } from './accounting.js';
import { type Check, Evidence, type Material } from './evidence.js';
import { answers, endings, oneAtATime, requests, stops, toolCalls } from './executions.js';
import { contexts, savedOrder } from './order.js';
import { processes } from './processes.js';
import { streams } from './streams.js';
import { texts } from './texts.js';

const CHECKS: readonly Check[] = [
  accounting,
  changes,
  oneAtATime,
  endings,
  stops,
  requests,
  toolCalls,
  answers,
  savedOrder,
  contexts,
  streams,
  texts,
  processes,
];

/** Judges everything that is known of a round; what was seen on the way comes first. */
export function check(material: Material): Violation[] {
  const evidence = new Evidence(material);
  return [...material.history.violations, ...CHECKS.flatMap((one) => one(evidence))];
}
