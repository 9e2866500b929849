import { randomBytes } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { inState, writePrivateFile } from '../setup/paths.mjs';
import { SetupError } from '../setup/say.mjs';

const file = inState('secrets.json');

/**
 * The secrets of this installation: those of the environment, else those that were made here at the first start.
 * @returns {{ENCRYPTION_KEY: string, ADMIN_TOKEN: string, postgresPassword: string, redisPassword: string}}
 */
export function readSecrets() {
  const kept = existsSync(file) ? parse(readFileSync(file, 'utf8')) : {};
  const made = {
    ENCRYPTION_KEY: randomBytes(32).toString('base64'),
    ADMIN_TOKEN: randomBytes(32).toString('base64url'),
    postgresPassword: randomBytes(18).toString('base64url'),
    redisPassword: randomBytes(18).toString('base64url'),
  };
  const all = { ...made, ...kept };
  if (Object.keys(made).some((name) => !(name in kept))) writePrivateFile(file, `${JSON.stringify(all, null, 2)}\n`);
  const given = Object.entries(process.env).filter(
    ([name, value]) => ['ENCRYPTION_KEY', 'ADMIN_TOKEN'].includes(name) && value,
  );
  return { ...all, ...Object.fromEntries(given) };
}

function parse(text) {
  try {
    return JSON.parse(text);
  } catch {
    throw new SetupError(
      `${file} is damaged: restore it, or remove .turnkeep/ to begin anew (this deletes the data in it).`,
    );
  }
}
