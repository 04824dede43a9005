/** Whether plain processes can be run here. Finds out by running one, and takes proot's loader from it. */
import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { copyFileSync, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { messageOf } from '../../../core/errors.ts';
import { findProgram, hostSearchPath } from '../host-command.ts';
import { untilReady } from '../network/user-network.ts';
import { childPids } from '../processes/process-table.ts';
import { callFilter, underCallFilter } from './call-filter.ts';
import { ProcessRuntime } from './process-runtime.ts';

/** `stat` uses one of the calls that proot does not know: it sees the file only when the filter works. */
const probeScript = 'stat -c ready "/tmp/$1" 2>&1 && read -r end';

/** The runtime, or what is missing with its remedy. Keeps the loader in `cacheDir`. */
export async function findProcessRuntime(
  cacheDir: string,
  signal: AbortSignal,
): Promise<ProcessRuntime | { readonly missing: string }> {
  for (const [program, package_] of [
    ['proot', 'proot'],
    ['perl', 'perl-base'],
  ] as const)
    if (findProgram(program) === null)
      return { missing: `${program} is not installed (\`sudo apt-get install ${package_}\`)` };
  if (callFilter() === null) return { missing: `not written for ${process.arch}` };
  const loader = path.join(cacheDir, 'proot-loader');
  try {
    await takeLoader(loader, signal);
  } catch (error) {
    signal.throwIfAborted();
    return {
      missing: `proot cannot trace processes here: ${messageOf(error)} (an administrator can allow it with \`sysctl kernel.yama.ptrace_scope=1\`)`,
    };
  }
  return new ProcessRuntime({ loader, isRoot: process.getuid?.() === 0 });
}

/**
 * proot carries its loader in itself and writes it to a temporary file on every start, which a killed proot leaves behind. From a file
 * of ours it serves all starts, and whoever runs it can be recognised.
 */
async function takeLoader(target: string, signal: AbortSignal): Promise<void> {
  const dir = path.join(path.dirname(target), `probe-${randomUUID()}`);
  const draft = path.join(dir, 'loader');
  mkdirSync(dir, { mode: 0o700 });
  try {
    writeFileSync(path.join(dir, 'seen'), '');
    const [file = '', ...args] = underCallFilter([
      ...['proot', '-v', '-1', '-r', '/', '-b', `${dir}:/tmp`, '-w', '/'],
      ...['/bin/sh', '-c', probeScript, 'probe', 'seen'],
    ]);
    const child = spawn(file, args, {
      stdio: ['pipe', 'pipe', 'pipe'],
      cwd: '/',
      env: { PATH: hostSearchPath() },
    });
    child.stdin.on('error', () => undefined); // it may have ended
    let said = '';
    const isReady = new Promise<void>((resolve) => {
      child.stdout.on('data', (chunk: Buffer) => {
        said += chunk.toString('utf8');
        if (said.includes('ready\n')) resolve();
      });
    });
    await untilReady(child, { signal, what: 'proot', isReady });
    const [pid = 0] = childPids(child.pid ?? 0);
    copyFileSync(`/proc/${pid}/exe`, draft);
    renameSync(draft, target);
    const ended = new Promise((resolve) => child.once('exit', resolve));
    child.stdin.end('end\n');
    await ended;
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}
