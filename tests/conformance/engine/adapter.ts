import type {
  Engine,
  EngineCapabilities,
  EngineKind,
  EngineOptions,
} from '../../../src/engines/engine.ts';
import type { RequestLogEntry } from '../../../src/engines/server/request-log.ts';

export interface EngineAdapter {
  /** Names the row. */
  readonly name: string;
  readonly kind: EngineKind;
  /** Of the engine process. */
  readonly dialect: 'sglang' | 'vllm';
  /** What the client's base address has behind the engine's. */
  readonly basePath: string;
  /**
   * What the client may decline: a capability it does not declare, or the id of a case it fails. A decline that is not listed fails the run, and
   * so does a listed one that is declared or passes after all.
   */
  readonly declines: readonly (keyof EngineCapabilities | (string & {}))[];
  /** Wraps the client; for controls. */
  readonly wrap?: (engine: Engine) => Engine;
}

/** What a case gets. Clients it opens are destroyed when it ends. */
export interface EngineBench {
  readonly adapter: EngineAdapter;
  readonly engine: Engine;
  /** Address of the engine process, without the adapter's path. */
  readonly serverUrl: string;
  readonly apiKey: string;
  /** Fires when the case takes too long. */
  readonly signal: AbortSignal;
  readonly open: (options?: Partial<EngineOptions>) => Promise<Engine>;
  /** The engine's own account of a request, once it has ended. */
  readonly logged: (requestId: string) => Promise<RequestLogEntry>;
  /** Resolves once `condition` is true; what it looks at is in another process. */
  readonly until: (condition: () => Promise<boolean>) => Promise<void>;
}

export interface EngineCase {
  readonly id: string;
  readonly title: string;
  readonly needs?: keyof EngineCapabilities;
  readonly run: (bench: EngineBench) => Promise<void>;
}
