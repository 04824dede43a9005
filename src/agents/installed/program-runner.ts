/** Runs a program of this machine to its end; rejects with the reason of the signal, or when it cannot be started. */
export type ProgramRunner = (
  argv: readonly [string, ...string[]],
  options: {
    readonly cwd: string;
    readonly variables: Readonly<Record<string, string | undefined>>;
    readonly signal: AbortSignal;
  },
) => Promise<{
  readonly exitCode: number | null;
  readonly stdout: string;
  readonly stderr: string;
}>;

/** What an installer has of this machine. */
export interface InstallerParts {
  readonly run: ProgramRunner;
  /** Of this process: installers find their settings by them. */
  readonly variables: Readonly<Record<string, string | undefined>>;
  /** For connections to the registry; null = what the system trusts. */
  readonly extraCaBundle: string | null;
}
