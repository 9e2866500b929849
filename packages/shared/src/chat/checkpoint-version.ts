/** The version of the checkpoints that this release writes. A worker claims no checkpoint of a newer one. */
export const CHECKPOINT_VERSION = 1;
