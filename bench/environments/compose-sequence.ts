/**
 * The commands that Harbor issues for one plain Dockerfile task with the oracle and a shared verifier (spec §4.5), through the compose CLI, on
 * a task folder of ours. Nothing is left out and nothing added; the copy of a missing artifact is not part of a plain task.
 */
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { command } from './commands.ts';

export async function runComposeSequence(options: {
  readonly taskDir: string;
  /** `DOCKER_CONFIG` folder whose `cli-plugins/` holds compose; null = the user's own. */
  readonly dockerConfigDir: string | null;
  readonly project: string;
}): Promise<void> {
  const { taskDir, project } = options;
  const scratch = await mkdtemp(path.join(os.tmpdir(), 'slipway-bench-compose-'));
  const logs = path.join(scratch, 'logs');
  for (const name of ['agent', 'verifier', 'artifacts'])
    await mkdir(path.join(logs, name), { recursive: true });
  const overlay = path.join(scratch, 'overlay.json');
  const build = path.join(scratch, 'build.json');
  await writeFile(
    build,
    JSON.stringify({
      services: {
        main: {
          build: { context: path.join(taskDir, 'environment') },
          pull_policy: 'build',
          command: ['sh', '-c', 'sleep infinity'],
        },
      },
    }),
  );
  await writeFile(
    overlay,
    JSON.stringify({
      services: {
        main: {
          volumes: ['agent', 'verifier', 'artifacts'].map((name) => ({
            type: 'bind',
            source: path.join(logs, name),
            target: `/logs/${name}`,
          })),
        },
      },
    }),
  );
  const variables =
    options.dockerConfigDir === null ? {} : { DOCKER_CONFIG: options.dockerConfigDir };
  const docker = async (...args: string[]): Promise<string> => command('docker', args, variables);
  const files = ['-f', build, '-f', overlay];
  const compose = async (...args: string[]): Promise<string> =>
    docker(
      'compose',
      '--project-name',
      project,
      '--project-directory',
      path.join(taskDir, 'environment'),
      ...files,
      ...args,
    );
  const asRoot = async (line: string): Promise<string> =>
    compose('exec', '-T', '-u', 'root', 'main', 'bash', '-c', line);
  const chown = async (): Promise<void> => {
    for (const name of ['verifier', 'agent', 'artifacts'])
      await asRoot(`chown -R 0:0 /logs/${name}`);
  };
  try {
    await docker('info');
    await docker('info', '--format', '{{.OSType}}');
    await compose('build');
    await docker('inspect', '--format', '{{.Os}}', 'hb__absent').catch(() => '');
    await compose('down', '--remove-orphans').catch(() => '');
    await compose('up', '--detach', '--wait');
    await asRoot(
      'mkdir -p /logs/verifier /logs/agent /logs/artifacts && chmod 777 /logs/verifier /logs/agent /logs/artifacts',
    );
    await compose('cp', path.join(taskDir, 'solution/.'), 'main:/solution');
    await asRoot('chmod +x /solution/solve.sh');
    await compose(
      'exec',
      '-T',
      '-e',
      'DEBIAN_FRONTEND=noninteractive',
      'main',
      'bash',
      '-c',
      '(/solution/solve.sh) > /logs/agent/oracle.txt 2>&1',
    );
    await docker('info');
    await chown();
    await compose('cp', path.join(taskDir, 'tests/.'), 'main:/tests');
    await asRoot('chmod +x /tests/test.sh');
    await compose(
      'exec',
      '-T',
      'main',
      'bash',
      '-c',
      '(/tests/test.sh) > /logs/verifier/test-stdout.txt 2>&1',
    );
    await chown();
  } finally {
    await compose('down', '--rmi', 'local', '--volumes', '--remove-orphans');
    await rm(scratch, { recursive: true, force: true });
  }
}
