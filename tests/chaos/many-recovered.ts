/** How long a server takes to take up what an earlier life left, when that is much. */
import { mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { systemClock } from '../../src/core/clock.ts';
import { never } from '../../src/core/linked-abort.ts';
import { silentLogger } from '../../src/core/logger.ts';
import { FileLocks } from '../../src/store/file/file-lock.ts';
import { SqliteRolloutStore } from '../../src/store/sqlite/sqlite-rollout-store.ts';
import { startServeProcess } from '../support/serve-process.ts';

export interface ManyRecovered {
  readonly recovered: number;
  /** From the start of the process until it was ready, with that many and with none. */
  readonly readyMs: number;
  readonly emptyReadyMs: number;
  readonly states: Readonly<Record<string, number>>;
}

const request = (id: string): string =>
  JSON.stringify({
    rollout_id: id,
    initial_messages: [{ role: 'user', content: 'x'.repeat(2_000) }],
    chat_completions_url: '',
    completion_callback_url: 'http://127.0.0.1:9/completion',
    grader_callback_url: null,
    metadata: { null: { duration_ms: 3_600_000 } },
  });

/** `count` rollouts are live in a store; of each hundred one had begun. */
export async function recoverMany(count: number): Promise<ManyRecovered> {
  const root = await mkdtemp(path.join(os.tmpdir(), 'many-recovered-'));
  const dataDir = path.join(root, 'data');
  const flags = [
    ...['--backend', 'null', '--data-dir', dataDir, '--max-concurrent', '4'],
    ...['--shutdown-drain-sec', '0.1'],
  ];
  try {
    const emptyReadyMs = await readyAfter(flags, root);
    await fill(dataDir, count);
    const begin = performance.now();
    await using server = await startServeProcess(flags, { stateDir: root });
    const readyMs = performance.now() - begin;
    await server.kill();
    return { recovered: server.recovered, readyMs, emptyReadyMs, states: await statesOf(dataDir) };
  } finally {
    await rm(root, { recursive: true, force: true });
  }
}

async function readyAfter(flags: readonly string[], stateDir: string): Promise<number> {
  const begin = performance.now();
  await using server = await startServeProcess(flags, { stateDir });
  const readyMs = performance.now() - begin;
  await server.kill();
  return readyMs;
}

const open = (dataDir: string): Promise<SqliteRolloutStore> =>
  SqliteRolloutStore.open(dataDir, {
    clock: systemClock,
    logger: silentLogger,
    locks: new FileLocks(systemClock),
    signal: never,
  });

async function fill(dataDir: string, count: number): Promise<void> {
  const store = await open(dataDir);
  await Promise.all(
    Array.from({ length: count }, async (_, index) => {
      const id = `r-${index}`;
      const acceptedAt = new Date();
      await store.accept({ id, tenant: 'default', request: request(id), digest: id, acceptedAt });
      if (index % 100 !== 0) return;
      const set = { state: 'running', hasAgentBegun: true, startedAt: acceptedAt } as const;
      await store.change({ id, from: ['queued'], set: { ...set, attempt: 1 } });
    }),
  );
  await store.close();
}

async function statesOf(dataDir: string): Promise<Readonly<Record<string, number>>> {
  const store = await open(dataDir);
  const rollouts = await store.list({ limit: 1_000_000 });
  await store.close();
  const groups = Map.groupBy(rollouts, ({ state }) => state);
  return Object.fromEntries([...groups].map(([state, members]) => [state, members.length]));
}
