import { setTimeout as delay } from 'node:timers/promises';
import { LinkedAbort } from '../../../src/core/linked-abort.ts';
import type { Engine, EngineOptions } from '../../../src/engines/engine.ts';
import { openEngine } from '../../../src/engines/registry.ts';
import type { EngineAdapter, EngineBench, EngineCase } from './adapter.ts';
import { apiKey, type EngineProcess } from './engine-process.ts';

const defaultLimitMs = 60_000;

/** Runs one case with a client of its own. */
export async function runEngineCase(
  testCase: EngineCase,
  {
    adapter,
    server,
    limitMs = defaultLimitMs,
  }: {
    readonly adapter: EngineAdapter;
    readonly server: EngineProcess;
    readonly limitMs?: number;
  },
): Promise<void> {
  const opened: Engine[] = [];
  using limit = new LinkedAbort([], {
    ms: limitMs,
    reason: () => new Error(`${testCase.id} took longer than ${limitMs} ms`),
  });
  const { signal } = limit;
  const open = async (options: Partial<EngineOptions> = {}): Promise<Engine> => {
    const baseUrl = `${server.url}${adapter.basePath}`;
    const engine = await openEngine({ kind: adapter.kind, baseUrl, apiKey, ...options });
    opened.push(engine);
    return adapter.wrap?.(engine) ?? engine;
  };
  const until: EngineBench['until'] = async (condition) => {
    while (!(await condition())) await delay(10, undefined, { signal });
  };
  const logged: EngineBench['logged'] = async (requestId) => {
    await until(() => Promise.resolve(server.logged(requestId) !== undefined));
    return server.logged(requestId)!;
  };
  const bench: EngineBench = {
    adapter,
    engine: await open(),
    serverUrl: server.url,
    apiKey,
    signal,
    open,
    logged,
    until,
  };
  try {
    await Promise.race([testCase.run(bench), rejection(signal)]);
  } finally {
    for (const engine of opened) await engine.destroy(new Error('the case is over'));
  }
}

/** A case that waits for what never comes, whatever it waits on. */
async function rejection(signal: AbortSignal): Promise<never> {
  return await new Promise<never>((_, reject) =>
    signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true }),
  );
}
