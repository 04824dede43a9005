/** A thread of clients that obey: each submits one rollout at its time and, when it is sent away, comes back when it was told to, or not at all. */
import { setTimeout as delay } from 'node:timers/promises';
import { parentPort, workerData } from 'node:worker_threads';
import { Pool } from 'undici';
import { rolloutBody, type ClientNews, type ClientsTask, type ClientsReport } from './flood.ts';

const task = workerData as ClientsTask;
const pool = new Pool(task.url, { connections: 128, pipelining: 1 });
const refusedMs: number[] = [];
const retryAfterS: number[] = [];
const otherStatuses: number[] = [];
/** Patient clients of each tenant that were not accepted so far. */
const outside = new Map<string, number>();
const sentAway = new Set<string>();
let contestedFrom: number | null = null;
let contestedTo: number | null = null;
let wentAway = 0;
const now = (): number => performance.timeOrigin + performance.now();
const tell = (news: ClientNews): void => parentPort?.postMessage(news);

async function submit(client: ClientsTask['clients'][number]): Promise<void> {
  const { id, tenant, atMs, isPatient } = client;
  await delay(atMs);
  const body = JSON.stringify(rolloutBody(id, task));
  for (;;) {
    const began = performance.now();
    const answer = await pool.request({
      ...{ method: 'POST', path: '/rollout', body },
      headers: { 'content-type': 'application/json' },
    });
    await answer.body.dump();
    if (answer.statusCode === 202) break;
    if (answer.statusCode !== 429) {
      otherStatuses.push(answer.statusCode);
      return;
    }
    refusedMs.push(performance.now() - began);
    const seconds = Number(answer.headers['retry-after']);
    retryAfterS.push(seconds);
    if (!isPatient) {
      wentAway += 1;
      return;
    }
    sentAway.add(tenant);
    if (sentAway.size === outside.size) contestedFrom ??= now();
    await delay(1_000 * seconds);
  }
  tell({ accepted: id });
  if (!isPatient) return;
  const left = (outside.get(tenant) ?? 0) - 1;
  outside.set(tenant, left);
  if (left === 0) contestedTo ??= now();
}

for (const { tenant } of task.clients.filter(({ isPatient }) => isPatient))
  outside.set(tenant, (outside.get(tenant) ?? 0) + 1);
const report = (isDone: boolean, errors: readonly string[]): ClientsReport => ({
  ...{ isDone, errors, refusedMs, retryAfterS, otherStatuses, wentAway },
  ...{ contestedFrom, contestedTo },
});
const meanwhile = setInterval(() => tell({ report: report(false, []) }), 2_000);
const results = await Promise.allSettled(task.clients.map(submit));
clearInterval(meanwhile);
const errors = results.flatMap((one) => (one.status === 'rejected' ? [String(one.reason)] : []));
tell({ report: report(true, errors) });
await pool.destroy();
