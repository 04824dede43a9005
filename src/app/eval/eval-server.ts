/** The rollout server of an evaluation: one in this process on free loopback ports, or one that runs already. */
import { request } from 'undici';
import { z } from 'zod';
import type { EvalConfig } from '../../config/eval/read-eval-config.ts';
import { compileServeConfig, type ServeConfig } from '../../config/serve/read-serve-config.ts';
import { settingRows } from '../../config/serve/setting-table.ts';
import { messageOf, RolloutError } from '../../core/errors.ts';
import { LinkedAbort } from '../../core/linked-abort.ts';
import type { AppPorts } from '../ports.ts';
import { startServer } from '../serve.ts';
import { isFields } from '../../config/fields.ts';

export interface EvalServer {
  /** Without a slash at its end; may hold a key in its path. */
  readonly url: string;
  readonly key: string | null;
  /** What it runs at once; null = it does not say. */
  readonly capacity: number | null;
  /** For people. */
  readonly shown: string;
  readonly isOwn: boolean;
  /** Resolves when a server of our own has lost a part without which no rollout goes on. */
  readonly lost: Promise<Error>;
  /** null = it answers; SERVER_UNREACHABLE. */
  look(signal: AbortSignal): Promise<RolloutError | null>;
  /** Ends a server of our own, running rollouts included. Idempotent. */
  stop(): Promise<void>;
}

const answerMs = 10_000;
const health = z.object({
  capacity: z.object({ max_concurrent: z.number().int().min(1) }).optional(),
});

/** What `startServer` takes; CONFIG_INVALID as `slipway serve` says it. */
export function ownServerConfig(
  config: EvalConfig,
  dataDir: string,
  { machine }: Pick<AppPorts, 'machine'>,
): ServeConfig {
  // Variables for another server do not reach into an evaluation: its file says what it does.
  const foreign = new Set(
    settingRows.flatMap(({ variable, setting }) => [variable, setting.otherVariable ?? '']),
  );
  const variables = Object.fromEntries(
    Object.entries(machine.variables).filter(([name]) => !foreign.has(name)),
  );
  const { modelName, serveDocument, file } = config;
  const { backend } = serveDocument;
  const kind = isFields(backend) && backend['kind'] === 'harbor' ? 'harbor' : 'native';
  // A name may hold slashes itself: Qwen/Qwen3-4B.
  const model =
    modelName === null || modelName.startsWith('openai/') ? modelName : `openai/${modelName}`;
  return compileServeConfig(
    {
      flags: {
        '--data-dir': dataDir,
        ...{ '--port': '0', '--data-port': '0', '--store': 'memory' },
        ...pace(config),
        ...(model !== null && { [`--backend-${kind}-model`]: model }),
      },
      document: serveDocument,
      file,
    },
    { ...machine, variables },
  );
}

/** As many running places as are asked for, unless the file says how many there are. */
function pace({ batchSize, serveDocument }: EvalConfig): Readonly<Record<string, string>> {
  const { admission } = serveDocument;
  const isGiven = isFields(admission) && admission['max_concurrent'] !== undefined;
  return batchSize === null || isGiven ? {} : { '--max-concurrent': String(batchSize) };
}

export async function startOwnServer(
  config: ServeConfig,
  options: {
    readonly ports: AppPorts;
    readonly secrets: readonly string[];
    readonly signal: AbortSignal;
  },
): Promise<EvalServer> {
  const server = await startServer(config, options);
  const hurry = new LinkedAbort([]);
  return {
    url: server.controlUrl,
    key: null,
    capacity: config.admission.maxConcurrent,
    shown: `in this process, backend ${server.backend}`,
    isOwn: true,
    lost: server.lost,
    look: () => Promise.resolve(null),
    stop: async () => {
      hurry.abort(new RolloutError('CANCELLED', 'the evaluation is over', { phase: 'server' }));
      await server.stop(hurry.signal);
    },
  };
}

/** SERVER_UNREACHABLE when nothing answers there. */
export async function reachServer(
  address: { readonly url: string; readonly key: string | null },
  signal: AbortSignal,
): Promise<EvalServer> {
  const url = address.url.replace(/\/+$/, '');
  const asked = await ask(url, signal);
  if (asked instanceof RolloutError) throw asked;
  return {
    ...{ url, key: address.key, isOwn: false, shown: new URL(url).origin },
    capacity: asked.capacity?.max_concurrent ?? null,
    lost: new Promise(() => undefined),
    look: async (looking) => {
      const answer = await ask(url, looking);
      return answer instanceof RolloutError ? answer : null;
    },
    stop: () => Promise.resolve(),
  };
}

async function ask(
  url: string,
  signal: AbortSignal,
): Promise<z.output<typeof health> | RolloutError> {
  const { origin } = new URL(url);
  const refuse = (why: string): RolloutError =>
    new RolloutError('SERVER_UNREACHABLE', `no rollout server answers at ${origin}: ${why}`, {
      phase: 'server',
      field: 'server_url',
      remedy: 'Start it with slipway serve, or correct server_url, then go on.',
    });
  using link = new LinkedAbort([signal], {
    ms: answerMs,
    reason: () => new Error(`no answer within ${answerMs / 1000} s`),
  });
  try {
    const answer = await request(`${url}/health`, { signal: link.signal });
    const text = await answer.body.text();
    // Where something before the server wants a key for it, the first rollout says whether ours is right.
    if (answer.statusCode === 401 || answer.statusCode === 403) return {};
    if (answer.statusCode !== 200) return refuse(`/health answered ${answer.statusCode}`);
    const found = health.safeParse(parsed(text));
    return found.success ? found.data : refuse('/health does not answer as one');
  } catch (error) {
    signal.throwIfAborted();
    return refuse((error as NodeJS.ErrnoException).code ?? messageOf(error));
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return null;
  }
}
