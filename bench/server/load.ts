/**
 * A process that submits rollouts, a fixed number at a time, and prints how long that took. Its one argument is a JSON document. A refusal is obeyed:
 * it waits as long as the server asks.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { Pool } from 'undici';
import { quantile } from '../samples.ts';
import { rolloutBody } from './rollout-body.ts';

export interface LoadTask {
  readonly url: string;
  readonly prefix: string;
  readonly count: number;
  readonly concurrency: number;
  readonly durationMs: number;
  readonly callbackUrl: string | null;
}

export interface LoadResult {
  readonly seconds: number;
  readonly refusals: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

const task = JSON.parse(process.argv[2] ?? '') as LoadTask;
const pool = new Pool(task.url, { connections: task.concurrency, pipelining: 1 });
const times: number[] = [];
let refusals = 0;
let next = 0;

async function submit(id: string): Promise<void> {
  const body = rolloutBody(id, task);
  for (;;) {
    const begin = performance.now();
    const {
      statusCode,
      headers,
      body: answer,
    } = await pool.request({
      ...{ method: 'POST', path: '/rollout', body },
      headers: { 'content-type': 'application/json' },
    });
    await answer.dump();
    if (statusCode === 202) {
      times.push(performance.now() - begin);
      return;
    }
    if (statusCode !== 429) throw new Error(`status ${statusCode}`);
    refusals += 1;
    await delay(1_000 * Number(headers['retry-after'] ?? 1));
  }
}

async function submitInTurn(): Promise<void> {
  while (next < task.count) {
    next += 1;
    await submit(`${task.prefix}-${next}`);
  }
}

const begin = performance.now();
await Promise.all(Array.from({ length: task.concurrency }, submitInTurn));
const result: LoadResult = {
  seconds: (performance.now() - begin) / 1_000,
  refusals,
  p50Ms: quantile(times, 0.5),
  p99Ms: quantile(times, 0.99),
};
console.log(JSON.stringify(result));
await pool.destroy();
