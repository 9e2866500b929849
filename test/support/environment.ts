import { fileURLToPath } from 'node:url';

/** The root of the repository, where the product's processes are started. */
export const REPOSITORY = fileURLToPath(new URL('../..', import.meta.url));

/** The value of an environment variable that `scripts/test.mjs` sets; throws where a test was started without it. */
export function required(name: string): string {
  const value = process.env[name];
  if (value === undefined || value === '') throw new Error(`${name} is not set: run the tests with 'npm test'`);
  return value;
}

let count = 0;

/** A word that no other test of this run uses: for names, and for markers that script the model server. */
export function unique(word: string): string {
  count += 1;
  return `${word}-${process.pid}-${count}x`;
}
