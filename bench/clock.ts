/** Now, in ms. The machine's monotonic clock: it means the same in every process, so times may be compared between them. */
export function nowMs(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}
