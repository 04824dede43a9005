/** Programs that others publish, installed once into the cache folder, each version in a folder of its own. */
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdir, rename, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import { onCore } from './cores.ts';

export const run = promisify(execFile);

export interface RunningProgram extends AsyncDisposable {
  /** Of the API, with `/v1`. */
  readonly url: string;
  readonly pid: number;
  /** By which it knows where calls go. */
  readonly headers: Readonly<Record<string, string>>;
}

/** `install` fills an empty folder; what breaks off leaves nothing that looks installed. */
export async function installedIn(
  name: string,
  install: (dir: string) => Promise<void>,
): Promise<string> {
  const cache = process.env['XDG_CACHE_HOME'] ?? path.join(os.homedir(), '.cache');
  const root = process.env['SLIPWAY_CACHE_DIR'] ?? path.join(cache, 'slipway');
  const dir = path.join(root, name);
  const mark = path.join(dir, 'installed');
  if (existsSync(mark)) return dir;
  await rm(dir, { recursive: true, force: true });
  await mkdir(dir, { recursive: true });
  await install(dir);
  await writeFile(`${mark}.new`, '');
  await rename(`${mark}.new`, mark);
  return dir;
}

/** Packages of npm, without their install scripts. */
export async function npmInstalled(name: string, packages: readonly string[]): Promise<string> {
  return await installedIn(name, async (dir) => {
    await writeFile(path.join(dir, 'package.json'), '{"private":true}\n');
    const argv = ['install', '--no-audit', '--no-fund', '--ignore-scripts', ...packages];
    await run('npm', argv, { cwd: dir });
  });
}

/** On the measured core, once it answers at `probe`. */
export async function startedProgram(
  words: readonly string[],
  options: {
    readonly port: number;
    readonly probe: string;
    readonly startMs: number;
    readonly headers: RunningProgram['headers'];
    readonly env?: Readonly<Record<string, string>>;
  },
): Promise<RunningProgram> {
  const [program = '', ...argv] = onCore('measured', words);
  const child = spawn(program, argv, {
    stdio: 'ignore',
    env: { ...process.env, NODE_ENV: 'production', ...options.env },
  });
  const origin = `http://127.0.0.1:${options.port}`;
  const until = performance.now() + options.startMs;
  while (!(await fetch(origin + options.probe).then(always, never))) {
    if (performance.now() > until || child.exitCode !== null) {
      child.kill('SIGKILL');
      throw new Error(`${path.basename(words.at(0) ?? '')} does not start`);
    }
    await delay(50);
  }
  return {
    url: `${origin}/v1`,
    pid: child.pid ?? 0,
    headers: options.headers,
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
