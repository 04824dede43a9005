/** Whole chat completions by wrk, which costs little enough to share a core with the upstream. */
import { execFile } from 'node:child_process';
import { mkdtempDisposable, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { onCore } from './cores.ts';

export interface WrkTask {
  /** Of the API, with `/v1`. */
  readonly url: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly connections: number;
  readonly seconds: number;
}

export interface WrkResult {
  readonly perSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** Answers that were no success, and connections that failed. */
  readonly broken: number;
}

/** About 2 KB. */
const body = JSON.stringify({
  model: 'm',
  messages: [{ role: 'user', content: 'z'.repeat(1_900) }],
});

export async function wrk(task: WrkTask): Promise<WrkResult> {
  await using dir = await mkdtempDisposable(path.join(os.tmpdir(), 'slipway-bench-wrk-'));
  const script = path.join(dir.path, 'post.lua');
  const headers = { 'content-type': 'application/json', ...task.headers };
  const lines = [
    'wrk.method = "POST"',
    `wrk.body = [[${body}]]`,
    ...Object.entries(headers).map(([name, value]) => `wrk.headers["${name}"] = [[${value}]]`),
    'done = function(summary, latency)',
    '  local e = summary.errors',
    '  io.write(string.format("RESULT %f %f %f %d\\n", summary.requests / summary.duration * 1e6,',
    '    latency:percentile(50) / 1000, latency:percentile(99) / 1000,',
    '    e.connect + e.read + e.write + e.status + e.timeout))',
    'end',
  ];
  await writeFile(script, `${lines.join('\n')}\n`);
  const words = onCore('around', [
    ...['wrk', '--threads', '1', '--connections', String(task.connections)],
    ...['--duration', `${task.seconds}s`, '--timeout', '30s', '--script', script],
    `${task.url}/chat/completions`,
  ]);
  const [program = '', ...argv] = words;
  const { stdout } = await promisify(execFile)(program, argv);
  const found = /^RESULT (\S+) (\S+) (\S+) (\d+)$/m.exec(stdout);
  if (found === null) throw new Error(`wrk said nothing that can be read: ${stdout}`);
  const [perSecond = 0, p50Ms = 0, p99Ms = 0, broken = 0] = found.slice(1).map(Number);
  return { perSecond, p50Ms, p99Ms, broken };
}
