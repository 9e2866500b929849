// `npm test`: sets up what the tests need, runs them, and stops it all again. Extra arguments go to mocha:
// `npm test -- test/contract/chat.test.ts`, `npm test -- --grep 'stop'`. `--long`: the long tests in full.
// Until the dependencies are there, only Node's own modules may be imported.
import { build } from './setup/build.mjs';
import { installDependencies } from './setup/dependencies.mjs';
import { onInterrupt } from './setup/interrupts.mjs';
import { say, sayError, step } from './setup/say.mjs';
import { startThrowAway } from './setup/throw-away.mjs';
import { startMocha } from './test/mocha.mjs';

const args = process.argv.slice(2).filter((arg) => arg !== '--long');
const long = process.argv.includes('--long') ? { TURNKEEP_LONG: '1' } : {};

let stopped = false;
let mocha;
onInterrupt(
  () => {
    stopped = true;
    mocha?.stop();
  },
  () => mocha?.stop(),
);

const { passed, failed } = await runTests();
process.exitCode = stopped ? 130 : failed > 0 ? 1 : 0;
say(`${passed} passed, ${failed} failed`);

async function runTests() {
  let services;
  try {
    await step('dependencies', installDependencies);
    const typeFaults = await checkTypes();
    services = await startThrowAway({ kind: 'test', durable: false });
    if (stopped) return { passed: 0, failed: 1 };
    mocha = startMocha(args, { ...services.env, ...long }, services);
    const counts = await mocha.finished;
    return { passed: counts.passed, failed: counts.failed + typeFaults };
  } catch (error) {
    sayError(error);
    return { passed: 0, failed: 1 };
  } finally {
    await services?.stop();
  }
}

/** Tests run from the sources, so a type error is a failure, but no reason not to run them. */
async function checkTypes() {
  try {
    await step('build', () => build({ andCheckTests: true }));
    return 0;
  } catch (error) {
    sayError(error);
    return 1;
  }
}
