// `npm start`: sets everything up, starts mains and workers, and prints one link that signs the browser in.
// `npm start -- --mains 2 --workers 3 --port 4000`. Ctrl-C stops all of it; a second one, at once.
// Until the dependencies are there, only Node's own modules may be imported.
import { onInterrupt } from './setup/interrupts.mjs';
import { say, sayError } from './setup/say.mjs';
import { Installation } from './start/installation.mjs';
import { readOptions, usage } from './start/options.mjs';

try {
  const options = readOptions(process.argv.slice(2));
  if (options.help) say(usage);
  else await start(new Installation(options));
} catch (error) {
  sayError(error);
  process.exitCode = 1;
}

async function start(installation) {
  onInterrupt(
    async () => {
      say('\nStopping… (Ctrl-C again: at once)');
      await installation.stop();
      say('Stopped.');
      process.exit(0);
    },
    () => installation.kill(),
  );
  try {
    await installation.start();
  } catch (error) {
    if (installation.stopping) return;
    sayError(error);
    await installation.stop();
    process.exit(1);
  }
}
