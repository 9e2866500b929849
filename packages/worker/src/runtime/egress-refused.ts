/** A request that the network rules forbid. Its message is fit for a user: it shows no address of the inside. */
export class EgressRefused extends Error {
  override readonly name = 'EgressRefused';
}
