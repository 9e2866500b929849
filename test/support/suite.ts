import { Cluster, type ClusterOptions } from './cluster.js';
import { dropTemplate } from './postgres.js';
import { killLeftovers, type ProductProcess } from './processes.js';

const LOG_LINES = 15;

/** The root suite's end: the migrated template goes, and nobody may have left a process. */
after(async () => {
  await dropTemplate();
  const left = await killLeftovers();
  if (left.length > 0) throw new Error(`processes were left running: ${left.join(', ')}`);
});

/**
 * One cluster for the suite in which this is called: started before it, stopped (with exit code 0 everywhere) after
 * it. A failed test shows what the processes logged meanwhile. A request that a strict provider would refuse fails
 * the suite, whichever test looked at it.
 */
export function useCluster(options: ClusterOptions = {}): Cluster {
  const cluster = new Cluster(options);
  let marks = new Map<ProductProcess, number>();

  before(async function () {
    this.timeout(60_000);
    await cluster.start();
  });
  beforeEach(() => {
    marks = new Map(everybody(cluster).map((one) => [one, one.output.length]));
  });
  afterEach(function () {
    if (this.currentTest?.state !== 'failed') return;
    for (const one of everybody(cluster)) {
      const lines = one.output.slice(marks.get(one) ?? 0).slice(-LOG_LINES);
      if (lines.length > 0) console.error(`    ${one.name}:\n${lines.map((line) => `      ${line}`).join('\n')}`);
    }
  });
  after(async function () {
    this.timeout(60_000);
    await cluster.stop();
    const { complaints } = cluster.model;
    if (complaints.length > 0) throw new Error(`a strict provider would have refused:\n${complaints.join('\n')}`);
  });
  return cluster;
}

function everybody(cluster: Cluster): ProductProcess[] {
  return [...cluster.mains, ...cluster.workers];
}
