// Loaded into the product's processes by `--profile=FOLDER`: writes a CPU profile of the process when it exits, to be opened
// in a browser's developer tools.
import { writeFileSync } from 'node:fs';
import { Session } from 'node:inspector';
import path from 'node:path';

const session = new Session();
session.connect();
session.post('Profiler.enable');
session.post('Profiler.start');
process.on('exit', () => {
  session.post('Profiler.stop', (error, result) => {
    if (error) return;
    const name = path.basename(path.dirname(path.dirname(process.argv[1])));
    const file = path.join(process.env.BENCH_PROFILES, `${name}-${process.pid}.cpuprofile`);
    writeFileSync(file, JSON.stringify(result.profile));
  });
});
