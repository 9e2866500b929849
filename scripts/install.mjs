// Installs the dependencies, as `npm start` and `npm test` do.
import { installDependencies } from './setup/dependencies.mjs';
import { sayError, step } from './setup/say.mjs';

try {
  await step('dependencies', installDependencies);
} catch (error) {
  sayError(error);
  process.exitCode = 1;
}
