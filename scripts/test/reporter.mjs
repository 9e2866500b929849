import { writeFileSync } from 'node:fs';
import { Runner, reporters } from 'mocha';

/** How long a process may go on after its last test before that is a failure. */
const lingerMs = 10_000;

/**
 * Mocha's `spec`, which also writes the counts where `TURNKEEP_TEST_REPORT` says, and counts as a failure each
 * rejection that nobody handled (mocha lets them pass; thrown, they end its run in the middle), and a run that
 * does not end by itself: something was left open, and a leak is a fault like any other.
 */
export default class CountingReporter extends reporters.Spec {
  constructor(runner, options) {
    super(runner, options);
    const faults = countRejections(runner);
    runner.once(Runner.constants.EVENT_RUN_END, () => {
      const { passes, failures } = runner.stats;
      const report = () => writeReport(passes, failures + faults.count);
      report();
      process.once('exit', report); // With what went wrong after the last test.
      failWhenLingering(faults);
    });
  }
}

function countRejections(runner) {
  const faults = { count: 0 };
  let current = 'the first test';
  runner.on(Runner.constants.EVENT_TEST_BEGIN, (test) => {
    current = test.fullTitle();
  });
  const seen = new WeakSet();
  process.on('unhandledRejection', (reason, promise) => {
    if (seen.has(promise)) return; // Mocha emits each a second time.
    seen.add(promise);
    faults.count += 1;
    console.error(`\nUnhandled rejection during or after '${current}':`, reason);
  });
  return faults;
}

/** The timer itself does not keep the process alive: it fires only where something else does. */
function failWhenLingering(faults) {
  setTimeout(() => {
    const open = [...new Set(process.getActiveResourcesInfo())].join(', ');
    console.error(`\nThe tests are through, but the process does not end; still open: ${open}`);
    faults.count += 1;
    process.exit(1);
  }, lingerMs).unref();
}

function writeReport(passed, failed) {
  const file = process.env.TURNKEEP_TEST_REPORT;
  if (file) writeFileSync(file, JSON.stringify({ passed, failed }));
}
