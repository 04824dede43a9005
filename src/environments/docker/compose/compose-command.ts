import { spawn } from 'node:child_process';
import { access, constants } from 'node:fs/promises';
import { homedir } from 'node:os';
import path from 'node:path';

type Variables = Readonly<Record<string, string | undefined>>;

const systemPluginFolders = [
  '/usr/local/lib/docker/cli-plugins',
  '/usr/local/libexec/docker/cli-plugins',
  '/usr/lib/docker/cli-plugins',
  '/usr/libexec/docker/cli-plugins',
];

/** The compose CLI, version 2 or later: the plugin where the Docker CLI would look for it, else `docker-compose` on PATH. Null when there is none. */
export async function findComposeCommand(
  dockerConfigDir: string | null,
  variables: Variables,
): Promise<readonly string[] | null> {
  const config = dockerConfigDir ?? path.join(homedir(), '.docker');
  const plugins = [path.join(config, 'cli-plugins'), ...systemPluginFolders];
  const onPath = (variables['PATH'] ?? '').split(path.delimiter).filter((folder) => folder !== '');
  for (const folder of [...plugins, ...onPath]) {
    const file = path.join(folder, 'docker-compose');
    const isThere = await access(file, constants.X_OK).then(
      () => true,
      () => false,
    );
    if (!isThere) continue;
    const version = await runCompose([file], {
      args: ['version', '--short'],
      variables,
      input: '',
      signal: AbortSignal.timeout(10_000),
    });
    if (version.exitCode === 0 && !/^v?1\./.test(version.stdout.trim())) return [file];
  }
  return null;
}

export interface ComposeRun {
  readonly args: readonly string[];
  /** The whole process environment. */
  readonly variables: Variables;
  readonly input: string;
  readonly signal: AbortSignal;
  readonly onLine?: (line: string) => void;
}

export interface ComposeResult {
  /** null when it was killed or could not be started. */
  readonly exitCode: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

const killGraceMs = 5_000;

/** Runs the compose CLI to its end. When the signal fires it is terminated, then killed; it is always awaited. Never rejects. */
export function runCompose(command: readonly string[], run: ComposeRun): Promise<ComposeResult> {
  const [file = 'docker-compose', ...first] = command;
  return new Promise((resolve) => {
    const child = spawn(file, [...first, ...run.args], {
      env: run.variables,
      stdio: 'pipe',
    });
    const output = { stdout: '', stderr: '' };
    for (const stream of ['stdout', 'stderr'] as const)
      child[stream].on('data', (chunk: Buffer) => {
        const text = chunk.toString('utf8');
        output[stream] = (output[stream] + text).slice(-4 * 1024 * 1024);
        if (stream === 'stderr')
          for (const line of text.split('\n')) if (line.trim() !== '') run.onLine?.(line.trim());
      });
    let killTimer: NodeJS.Timeout | undefined;
    const stop = (): void => {
      child.kill('SIGTERM');
      killTimer = setTimeout(() => {
        child.kill('SIGKILL');
        child.stdout.destroy(); // programs that it started may hold the pipes for longer
        child.stderr.destroy();
      }, killGraceMs);
    };
    run.signal.addEventListener('abort', stop, { once: true });
    if (run.signal.aborted) stop();
    const finish = (exitCode: number | null): void => {
      clearTimeout(killTimer);
      run.signal.removeEventListener('abort', stop);
      resolve({ exitCode, ...output });
    };
    child.once('error', () => finish(null));
    child.once('close', finish);
    child.stdin.on('error', () => undefined); // it ended without reading: its exit code says why
    child.stdin.end(run.input);
  });
}
