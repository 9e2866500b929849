import type { Check } from './evidence.js';

/** No process ends but by the nemesis, and one that is asked to stop ends with 0 (contract, sections 9.10 and 1). */
export const processes: Check = ({ material }) =>
  material.instances.flatMap(({ name, tail, exit, stoppingAt }) => {
    if (tail === null) return [];
    const how = stoppingAt === null ? 'ended by itself' : 'was asked to stop and ended';
    return [{ rule: 'no process ends by itself', what: `${name} ${how} (${JSON.stringify(exit)}):\n${tail}` }];
  });
