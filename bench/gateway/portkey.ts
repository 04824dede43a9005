/** Portkey's gateway from npm, installed once into the cache folder, on one core. */
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import { onCore } from './cores.ts';
import { freePort } from './nginx.ts';

const version = '1.15.2';
const startMs = 30_000;

export interface RunningPortkey extends AsyncDisposable {
  readonly url: string;
  readonly pid: number;
  /** By which it knows where calls go. */
  readonly headers: Readonly<Record<string, string>>;
}

export async function startPortkey(upstreamUrl: string): Promise<RunningPortkey> {
  const port = await freePort();
  const argv = [await installed(), `--port=${port}`, '--headless'];
  const [program = '', ...words] = onCore('measured', [process.execPath, ...argv]);
  const child = spawn(program, words, {
    stdio: 'ignore',
    env: { ...process.env, NODE_ENV: 'production' },
  });
  const origin = `http://127.0.0.1:${port}`;
  const until = performance.now() + startMs;
  while (!(await fetch(origin).then(always, never))) {
    if (performance.now() > until || child.exitCode !== null)
      throw new Error("Portkey's gateway does not start");
    await delay(50);
  }
  return {
    url: `${origin}/v1`,
    pid: child.pid ?? 0,
    headers: {
      ...{ authorization: 'Bearer bench-upstream-key', 'x-portkey-provider': 'openai' },
      'x-portkey-custom-host': upstreamUrl,
    },
    async [Symbol.asyncDispose]() {
      if (child.exitCode !== null) return;
      const ended = once(child, 'exit');
      child.kill('SIGKILL');
      await ended;
    },
  };
}

const always = (): boolean => true;
const never = (): boolean => false;

/** The file that starts it. */
async function installed(): Promise<string> {
  const cache = process.env['XDG_CACHE_HOME'] ?? path.join(os.homedir(), '.cache');
  const root = process.env['SLIPWAY_CACHE_DIR'] ?? path.join(cache, 'slipway');
  const dir = path.join(root, `portkey-${version}`);
  const entry = path.join(dir, 'node_modules/@portkey-ai/gateway/build/start-server.js');
  if (existsSync(entry)) return entry;
  await mkdir(dir, { recursive: true });
  await writeFile(path.join(dir, 'package.json'), '{"private":true}\n');
  const argv = ['install', '--no-audit', '--no-fund', '--ignore-scripts'];
  await promisify(execFile)('npm', [...argv, `@portkey-ai/gateway@${version}`], { cwd: dir });
  return entry;
}
