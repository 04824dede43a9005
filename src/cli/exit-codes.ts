/** What the process answers. Harbor answers 0 also when trials ended in errors. */
export const exitCodes = {
  ok: 0,
  /** Trials ended in errors, or the command could not be carried out. */
  failed: 1,
  /** The command line, the configuration or what they name is wrong: an error of category `input`. */
  usage: 2,
  /** SIGINT or SIGTERM. */
  interrupted: 130,
} as const;
