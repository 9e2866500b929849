import { parseArgs } from 'node:util';
import { SetupError } from '../setup/say.mjs';

/**
 * The flags of `npm start`.
 * @param {string[]} args
 * @returns {{mains: number, workers: number, port: number}}
 */
export function readOptions(args) {
  const values = parse(args);
  return {
    mains: wholeNumber('--mains', values.mains, 1, 20),
    workers: wholeNumber('--workers', values.workers, 0, 20),
    port: wholeNumber('--port', values.port, 1, 65_535),
  };
}

function parse(args) {
  const options = {
    mains: { type: 'string', default: '1' },
    workers: { type: 'string', default: '1' },
    port: { type: 'string', default: process.env.PORT || '3000' },
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
