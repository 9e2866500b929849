// Checks the types of everything: packages, tests and bench. Needs the dependencies.
import { build } from './setup/build.mjs';
import { sayError, step } from './setup/say.mjs';

try {
  await step('types', () => build({ andCheckTests: true }));
} catch (error) {
  sayError(error);
  process.exitCode = 1;
}
