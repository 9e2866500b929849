import { parseArgs } from 'node:util';
import { SetupError } from '../setup/say.mjs';

/** What `--help` prints. */
export const usage = `npm start -- [--mains N] [--workers N] [--port P]

  --mains N    servers for HTTP, on P and the ports after it (1)
  --workers N  processes that run turns (1)
  --port P     the first main's port; where it is taken, any free one (PORT, else 3000)
  --help       this

DATABASE_URL and REDIS_URL: use these instead of a Postgres and a Redis of its own.
OPENAI_API_KEY (with OPENAI_BASE_URL and OPENAI_MODEL) or ANTHROPIC_API_KEY: the demo agent's model.`;

/**
 * The flags of `npm start`.
 * @param {string[]} args
 * @returns {{mains: number, workers: number, port: number, help: boolean}}
 * @throws {SetupError} where they make no sense
 */
export function readOptions(args) {
  const values = parse(args);
  return {
    mains: wholeNumber('--mains', values.mains, 1, 20),
    workers: wholeNumber('--workers', values.workers, 0, 20),
    port: wholeNumber('--port', values.port, 1, 65_535),
    help: values.help,
  };
}

function parse(args) {
  const options = {
    mains: { type: 'string', default: '1' },
    workers: { type: 'string', default: '1' },
    port: { type: 'string', default: process.env.PORT || '3000' },
    help: { type: 'boolean', short: 'h', default: false },
  };
  try {
    return parseArgs({ args, options, strict: true }).values;
  } catch (error) {
    throw new SetupError(`${error.message}. Use: npm start -- [--mains N] [--workers N] [--port P]`);
  }
}

function wholeNumber(name, text, least, most) {
  const value = Number(text);
  if (text.trim() !== '' && Number.isInteger(value) && value >= least && value <= most) return value;
  throw new SetupError(`${name} must be a whole number from ${least} to ${most}, not '${text}'.`);
}
