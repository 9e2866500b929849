import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { expect } from 'chai';
import { REPOSITORY } from '../support/environment.js';

const IS_LONG = Boolean(process.env.TURNKEEP_LONG);

/** Runs `npm run chaos` with these options; answers with its exit code and all that it printed. */
async function chaos(...options: string[]): Promise<{ code: number | null; output: string }> {
  const args = ['scripts/chaos.mjs', ...options];
  const child = spawn(process.execPath, args, { cwd: REPOSITORY, stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => {
      output += text;
    });
  const [code] = (await once(child, 'close')) as [number | null];
  return { code, output };
}

describe('chaos (contract, section 9)', () => {
  it('keeps every guarantee while processes, Redis, Postgres and connections fail', async function () {
    this.timeout(600_000);
    const { code, output } = await chaos('--minutes', IS_LONG ? '5' : '0.75');
    expect(code, output).to.equal(0);
    expect(output).to.match(/chaos: \d{3,} operations, \d+ faults, 0 violations, seed \w+/);
  });

  if (!IS_LONG) return;

  it('sees each build that is broken on purpose', async function () {
    this.timeout(1_200_000);
    const { code, output } = await chaos('--broken', 'all', '--quiet');
    expect(code, output).to.equal(0);
    for (const name of ['no-fence', 'no-unique-index', 'steer-twice', 'replay', 'lost-wake'])
      expect(output).to.match(new RegExp(`^${name}: caught`, 'm'));
  });
});
