/**
 * Writes docs/openapi.json and docs/http-api.md from the schemas of the contract. `--check` writes nothing and exits with 1 where
 * they are not up to date.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { openApiDocument } from './openapi/document.js';
import { reference } from './openapi/reference.js';

const files = {
  'openapi.json': `${JSON.stringify(openApiDocument(), null, 2)}\n`,
  'http-api.md': reference(),
};
const pathOf = (name: string) => fileURLToPath(new URL(`../docs/${name}`, import.meta.url));

for (const [name, text] of Object.entries(files)) {
  if (!process.argv.includes('--check')) writeFileSync(pathOf(name), text);
  else if (readFileSync(pathOf(name), 'utf8') !== text) {
    console.error(`docs/${name} is not up to date: run npm run docs`);
    process.exitCode = 1;
  }
}
