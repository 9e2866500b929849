import type { TurnScripts } from './turn-scripts.js';

/** What a bare process is told when it starts. */
export interface BareSetup {
  databaseUrl: string;
  redisUrl: string;
  modelUrl: string;
  concurrency: number;
  scripts: TurnScripts;
}

/** The bare queue, its jobs, and the streams of their events. */
export const BARE_QUEUE = { name: 'turns', prefix: '{bare}' } as const;
export const bareStream = (executionId: string) => `bare:events:${executionId}`;

/** Waits for the setup of this process, and ends it when the bench goes. */
export async function receiveSetup(): Promise<BareSetup> {
  process.on('disconnect', () => process.exit(0));
  return new Promise((resolve) => process.once('message', (setup) => resolve(setup as BareSetup)));
}
