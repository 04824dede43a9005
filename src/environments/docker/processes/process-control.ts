import type { KillReceipt, ProcessSnapshot } from '../../environment.ts';

/** Looks for the processes of one container and kills those that are not to be kept. */
export interface ProcessControl {
  snapshot(signal: AbortSignal): Promise<ProcessSnapshot>;
  /** AGENT_NOT_STOPPED when something outside `keep` is still alive at the end. */
  kill(keep: ProcessSnapshot, signal: AbortSignal): Promise<KillReceipt>;
  /** What lives in the container, by the host's numbers; null where this host does not see it. */
  pids(): Promise<readonly number[] | null>;
  /** Frees what it holds open in the container. Idempotent. */
  close(): void;
}

/** The command that keeps a container up. Its process, and what leads from init to it, is never killed. */
export const keepAliveCommand = 'sleep infinity';

/** How long killing goes on before it is given up. */
export const killLimitMs = 15_000;
