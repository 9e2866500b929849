/** A value of the environment that is missing or malformed; the message is one line that names it. */
export class ConfigError extends Error {}
