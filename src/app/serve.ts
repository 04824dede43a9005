/** `slipway serve`: builds the parts of the rollout server in their order, listens, and takes everything down in stages. */
import type { ServeConfig } from '../config/serve/read-serve-config.ts';
import type { CallbackDelivery } from '../callbacks/callback-delivery.ts';
import type { RolloutStore } from '../store/rollout-store.ts';
import type { AppPorts } from './ports.ts';

export interface RunningServer extends AsyncDisposable {
  /** `http://127.0.0.1:8000`. */
  readonly controlUrl: string;
  /** Where agents reach their model. */
  readonly dataUrl: string;
  readonly dataDir: string;
  readonly backend: string;
  /** Rollouts of an earlier life that were taken up. */
  readonly recovered: number;
  /**
   * Refuses new rollouts, lets running ones go on for the configured time or until `hurry` fires, ends what is left, closes. Idempotent: later calls share
   * the first one's end.
   */
  stop(hurry: AbortSignal): Promise<void>;
  /** Reads the keys again and opens the log files anew. */
  reload(): Promise<void>;
}

export interface StartServerOptions {
  readonly ports: AppPorts;
  /** Gives up starting. */
  readonly signal: AbortSignal;
  /** Hears what a person at the terminal should know. */
  readonly note: (text: string) => void;
  /** Puts something else in the place of a part; for proofs that break it on purpose. */
  readonly replace?: {
    readonly store?: (store: RolloutStore) => RolloutStore;
    readonly callbacks?: (callbacks: CallbackDelivery) => CallbackDelivery;
  };
}

export async function startServer(
  config: ServeConfig,
  options: StartServerOptions,
): Promise<RunningServer> {
  await Promise.resolve();
  options.signal.throwIfAborted();
  throw new Error(`not built yet: ${config.dataDir}`);
}
