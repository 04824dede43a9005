/** A process that makes model calls and prints how they went. Its one argument is a JSON document. */
import { Pool } from 'undici';
import { quantile } from '../samples.ts';
import { eventsPerStream } from './upstream.ts';

export interface CallsTask {
  readonly url: string;
  readonly count: number;
  readonly concurrency: number;
  readonly isStreamed: boolean;
  readonly headers?: Readonly<Record<string, string>>;
  /** Of a complete stream; default: those of the upstream. */
  readonly events?: number;
}

export interface CallsResult {
  readonly seconds: number;
  /** Whole calls that were no success, or streams that were not complete. */
  readonly broken: number;
  /** Of whole calls: until their end. Of streams: from an event's writing to its arrival. */
  readonly p50Ms: number;
  readonly p99Ms: number;
}

const task = JSON.parse(process.argv[2] ?? '') as CallsTask;
const { origin, pathname } = new URL(task.url);
const path = `${pathname === '/' ? '' : pathname}/chat/completions`;
const pool = new Pool(origin, { connections: null, headersTimeout: 0, bodyTimeout: 0 });
/** About 8 KiB: a few turns. */
const body = JSON.stringify({
  ...{ model: 'm', stream: task.isStreamed },
  messages: [{ role: 'user', content: 'z'.repeat(8_000) }],
});
const times: number[] = [];
let broken = 0;
let next = 0;

async function call(): Promise<void> {
  const begin = performance.now();
  const answer = await pool.request({
    ...{ method: 'POST', path, body },
    headers: { 'content-type': 'application/json', ...task.headers },
  });
  if (!task.isStreamed) {
    await answer.body.arrayBuffer();
    times.push(performance.now() - begin);
    if (answer.statusCode !== 200) broken += 1;
    return;
  }
  let events = 0;
  let rest = '';
  for await (const piece of answer.body as AsyncIterable<Buffer>) {
    const now = process.hrtime.bigint();
    const lines = (rest + piece.toString()).split('\n\n');
    rest = lines.pop() ?? '';
    for (const line of lines) {
      const at = /at=(\d+) /.exec(line)?.[1];
      if (at === undefined) continue;
      events += 1;
      times.push(Number(now - BigInt(at)) / 1e6);
    }
    if (lines.includes('data: [DONE]') && events === (task.events ?? eventsPerStream)) return;
  }
  broken += 1;
}

async function callInTurn(): Promise<void> {
  while (next < task.count) {
    next += 1;
    await call().catch(() => (broken += 1));
  }
}

const begin = performance.now();
await Promise.all(Array.from({ length: task.concurrency }, callInTurn));
const result: CallsResult = {
  ...{ seconds: (performance.now() - begin) / 1_000, broken },
  ...{ p50Ms: quantile(times, 0.5), p99Ms: quantile(times, 0.99) },
};
console.log(JSON.stringify(result));
await pool.destroy();
