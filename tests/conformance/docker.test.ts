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

/** Containers, networks and volumes of the suite by our label, and packet filter rules on interfaces of ours that are gone. */
async function leftovers(prefix: string): Promise<readonly string[]> {
  const labelled = async (...list: readonly string[]): Promise<readonly string[]> => {
    const format = ['--format', '{{.Label "slipway.name"}}'];
    const names = await lines('docker', ...list, '--filter', 'label=slipway.name', ...format);
    return names.filter((name) => name.startsWith(prefix)).map((name) => `${list[0]}: ${name}`);
  };
  const found = await Promise.all([
    labelled('ps', '--all'),
    labelled('network', 'ls'),
    labelled('volume', 'ls'),
    lines('iptables', '-w', '5', '-S').catch(() => []), // not root: no rules were made
  ]);
  return found.flatMap((each, index) => (index === 3 ? each.filter(isOrphan) : each));
}

/** A rule of a sandbox that still runs belongs to another test. */
function isOrphan(rule: string): boolean {
  const [bridge] = /\bslw[0-9a-f]{12}\b/.exec(rule) ?? [];
  return bridge !== undefined && !existsSync(`/sys/class/net/${bridge}`);
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
    forgetImage: async (contextHash) => {
      await run('docker', ['rmi', `slipway-build:${contextHash}`]).catch(() => undefined); // a build that failed left none
    },
  });
else
  test('environment conformance: docker', { skip: `no Docker engine at ${host}` }, () => undefined);
