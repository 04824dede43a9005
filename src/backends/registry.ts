/** Every backend by name; its code is loaded when it is first asked for. */
import type { Clock } from '../core/clock.ts';
import { RolloutError } from '../core/errors.ts';
import type { Logger } from '../core/logger.ts';
import type { BackendResolver, ExecutionBackend } from './execution-backend.ts';
import type { PythonInterpreter } from '../runner/interpreter.ts';
import type { NativePorts } from './native/native-ports.ts';

/** What a backend is made from. */
export interface BackendParts {
  /** The backend's own options, in snake_case; it checks them (CONFIG_INVALID). */
  readonly options: Readonly<Record<string, unknown>>;
  /** Of the admission, for `/health`: nothing is limited by a backend itself. */
  readonly limits: { readonly maxConcurrent: number; readonly maxQueueDepth: number };
  /** Absolute; a backend keeps to `trials/` in it. */
  readonly dataDir: string;
  /** Absolute: where relative paths of modules begin, and of tasks in metadata. */
  readonly baseDir: string;
  readonly clock: Clock;
  readonly logger: Logger;
  /** For users' code in Python, which is started with these variables. */
  readonly interpreter: PythonInterpreter;
  readonly variables: Readonly<Record<string, string | undefined>>;
  /** What trials are made with; opened only by a backend that runs trials. */
  readonly native: NativePorts;
}

type Factory = (parts: BackendParts) => Promise<ExecutionBackend>;

const backends: ReadonlyMap<string, Factory> = new Map<string, Factory>([
  [
    'null',
    async (parts) => {
      const { NullBackend } = await import('./null/null-backend.ts');
      return new NullBackend(parts.options, parts);
    },
  ],
  [
    'local',
    async (parts) => {
      const { LocalBackend } = await import('./local/local-backend.ts');
      return new LocalBackend(parts.options, parts);
    },
  ],
  [
    'native',
    async (parts) => {
      const { NativeBackend } = await import('./native/native-backend.ts');
      return new NativeBackend(parts.options, { ...parts, ports: parts.native });
    },
  ],
  [
    'harbor',
    async (parts) => {
      const { HarborBackend } = await import('./harbor/harbor-backend.ts');
      const { NativeBackend } = await import('./native/native-backend.ts');
      return new HarborBackend(parts.options, {
        ...parts,
        ports: parts.native,
        trialBackend: (options, ports) => new NativeBackend(options, { ...parts, ports }),
      });
    },
  ],
]);

export const backendNames: readonly string[] = [...backends.keys()];

/** How many rollouts run at once when the configuration does not say. */
export const defaultMaxConcurrent: Readonly<Record<string, number>> = {
  null: 64,
  local: 4,
  native: 8,
  harbor: 8,
};

/** Those whose rollouts start programs of the host: doing so holds up a thread. */
export const startsPrograms: ReadonlySet<string> = new Set(['native', 'harbor']);

export const openBackend: BackendResolver<BackendParts> = async (name, parts) => {
  const make = backends.get(name);
  if (make !== undefined) return await make(parts);
  throw new RolloutError('BACKEND_UNKNOWN', `no backend is called ${JSON.stringify(name)}`, {
    phase: 'config',
    field: 'backend.kind',
    remedy: `Use one of: ${backendNames.join(', ')}.`,
  });
};
