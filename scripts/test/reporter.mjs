import { writeFileSync } from 'node:fs';
import { Runner, reporters } from 'mocha';

/** How long a process may go on after its last test before that is a failure. */
const lingerMs = 10_000;

/**
 * Mocha's `spec`, which also writes the counts where `TURNKEEP_TEST_REPORT` says, and fails a run that does not
 * end by itself: something was left open, and a leak is a fault like any other.
 */
export default class CountingReporter extends reporters.Spec {
  constructor(runner, options) {
    super(runner, options);
    runner.once(Runner.constants.EVENT_RUN_END, () => {
      const { passes, failures } = runner.stats;
      writeReport(passes, failures);
      // Does not itself keep the process alive: it comes to this only where something else does.
      setTimeout(() => {
        const open = process.getActiveResourcesInfo();
        console.error(
          `\nThe tests are through, but the process does not end; still open: ${[...new Set(open)].join(', ')}`,
        );
        writeReport(passes, failures + 1);
        process.exit(1);
      }, lingerMs).unref();
    });
  }
}

function writeReport(passed, failed) {
  if (process.env.TURNKEEP_TEST_REPORT)
    writeFileSync(process.env.TURNKEEP_TEST_REPORT, JSON.stringify({ passed, failed }));
}
