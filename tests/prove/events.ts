/** Must show: the event stream of a real server loses nothing over 100 reconnects, and over deaths of the server. With its control. */
import { mkdtempSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { followOverReconnects } from '../chaos/event-reconnects.ts';
import { skippingProxy } from '../chaos/skipping-proxy.ts';
import { startServeProcess, type ServeProcess } from '../support/serve-process.ts';

const reconnects = Number(process.env['RECONNECTS'] ?? '100');
const seed = Number(process.env['SEED'] ?? '10');
const signal = AbortSignal.timeout(600_000);

/** Follows a server of its own; `deaths` times it is killed on the way. */
async function follow(options: { readonly deaths: number; readonly skips: boolean }) {
  const root = mkdtempSync(path.join(os.tmpdir(), 'slipway-events-'));
  let server: ServeProcess | null = null;
  const start = async (): Promise<ServeProcess> =>
    await startServeProcess(
      ['--backend', 'null', '--max-concurrent', '64', '--max-queue-depth', '2000'],
      { stateDir: root },
    );
  server = await start();
  let submitted = 0;
  let making: Promise<unknown> = Promise.resolve();
  const at = (): string => `${server?.url}/api/v1/events`;
  await using proxy = options.skips ? await skippingProxy(at, 40) : null;
  try {
    return await followOverReconnects({
      ...{ reconnects, seed, signal, cutBytes: 500 },
      url: () => proxy?.url ?? at(),
      async makeEvents() {
        const url = server?.url ?? '';
        const made = Promise.all([1, 2, 3].map(() => submit(url, submitted++)));
        making = Promise.all([making, made]);
        await made;
      },
      async between(connections) {
        if (options.deaths === 0 || connections % Math.ceil(reconnects / (options.deaths + 1)) > 0)
          return;
        await making;
        await server?.kill();
        server = await start();
      },
      newest: async () => await settledNewest(server?.url ?? ''),
    });
  } finally {
    await server.stop();
    rmSync(root, { recursive: true, force: true });
  }
}

async function submit(url: string, number: number): Promise<void> {
  const answer = await fetch(`${url}/rollout`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({
      ...{ rollout_id: `r${number}`, initial_messages: [], chat_completions_url: '' },
      completion_callback_url: 'http://127.0.0.1:9/completion',
      metadata: { null: { duration_ms: number % 7 } },
    }),
  });
  if (answer.status !== 202) throw new Error(`answered ${answer.status}`);
}

/** The newest cursor, once it stays: rollouts go on after they were submitted. */
async function settledNewest(url: string): Promise<number> {
  let before = -1;
  for (;;) {
    const answer = await fetch(`${url}/api/v1/events?limit=1`);
    const { newest } = (await answer.json()) as { newest: number };
    if (newest === before) return newest;
    before = newest;
    await new Promise((resolve) => setTimeout(resolve, 2_000));
  }
}

let isFailed = false;
for (const [what, deaths] of [
  ['cut connections', 0],
  ['cut connections and 5 deaths of the server', 5],
] as const) {
  const { connections, seen, newest, problems } = await follow({ deaths, skips: false });
  console.log(`${what}: ${connections} connections, ${seen.length} events of ${newest}`);
  for (const problem of problems.slice(0, 10)) console.log(`  PROBLEM ${problem}`);
  if (problems.length > 0 || seen.length !== newest || newest < reconnects * 3) isFailed = true;
}
const control = await follow({ deaths: 0, skips: true });
console.log(`control, a stream that skips one: ${control.problems[0] ?? 'NOT FOUND'}`);
if (control.problems.length === 0) isFailed = true;
console.log(isFailed ? 'FAILED' : 'nothing was lost, doubled or out of order');
if (isFailed) process.exitCode = 1;
