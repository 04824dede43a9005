import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { DockerProvider } from '../../src/environments/docker/docker-provider.ts';
import { environmentSuite } from './environment-suite.ts';

const run = promisify(execFile);
const host = process.env['DOCKER_HOST'] ?? 'unix:///var/run/docker.sock';
const image = 'debian:bookworm-slim';

async function lines(file: string, ...args: readonly string[]): Promise<readonly string[]> {
  const { stdout } = await run(file, args);
  return stdout.split('\n').filter((line) => line !== '');
}

/** Containers, networks and volumes by our label, and packet filter rules on interfaces of ours. */
async function leftovers(): Promise<readonly string[]> {
  const label = ['--filter', 'label=slipway.name'];
  const found = await Promise.all([
    lines('docker', 'ps', '--all', '--quiet', ...label),
    lines('docker', 'network', 'ls', '--quiet', ...label),
    lines('docker', 'volume', 'ls', '--quiet', ...label),
    lines('iptables', '-w', '5', '-S').catch(() => []), // not root: no rules were made
  ]);
  return found.flatMap((each, index) =>
    index === 3 ? each.filter((rule) => rule.includes('slw')) : each,
  );
}

const isEngineHere = !host.startsWith('unix://') || existsSync(host.slice('unix://'.length));
if (isEngineHere)
  environmentSuite({
    kind: 'docker',
    provider: () =>
      new DockerProvider(
        {
          host,
          dockerConfigDir: process.env['DOCKER_CONFIG'] ?? null,
          imageArchivesDir: process.env['SLIPWAY_IMAGE_ARCHIVES'] ?? null,
        },
        { hostVariables: process.env },
      ),
    image,
    declines: ['diskQuota', 'gpus', 'tpus', 'windows'],
    leftovers,
  });
else
  test('environment conformance: docker', { skip: `no Docker engine at ${host}` }, () => undefined);
