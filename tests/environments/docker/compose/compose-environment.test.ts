/** Compose projects against the real engine and the real compose CLI. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { promisify } from 'node:util';
import { isRolloutError } from '../../../../src/core/errors.ts';
import { lowerId } from '../../../../src/core/ids.ts';
import { LinkedAbort, never } from '../../../../src/core/linked-abort.ts';
import { DockerProvider } from '../../../../src/environments/docker/docker-provider.ts';
import type { Environment, EnvironmentSpec } from '../../../../src/environments/environment.ts';
import { baseImage, dockerSpec } from '../docker-spec.ts';

const run = promisify(execFile);
const signal = never;

const server =
  'use IO::Socket::INET; my $s = IO::Socket::INET->new(LocalPort => 8080, Listen => 5, ReuseAddr => 1) or die; ' +
  'while (my $c = $s->accept) { print $c "from the side\\n"; close $c }';

async function docker(...args: readonly string[]): Promise<string> {
  return (await run('docker', args)).stdout.trim();
}

const provider = new DockerProvider(
  { dockerConfigDir: process.env['DOCKER_CONFIG'] ?? null },
  { hostVariables: process.env },
);
const isUsable =
  existsSync('/var/run/docker.sock') &&
  (await provider.preflight(signal).then(
    () => provider.capabilities.compose,
    () => false,
  ));

async function output(environment: Environment, command: string): Promise<string> {
  return (await environment.exec({ command }, signal)).stdout.trim();
}

/** Reads what a service answers, from inside a sandbox. */
const ask = (host: string): string =>
  `for i in $(seq 40); do timeout 2 bash -c 'cat < /dev/tcp/${host}/8080' 2>/dev/null && break; sleep 0.1; done`;

describe(
  'compose environment',
  { skip: isUsable ? false : 'no engine or no compose CLI', concurrency: 1 },
  () => {
    let folder = '';
    before(async () => {
      folder = await mkdtemp(join(tmpdir(), 'slipway-compose-'));
    });
    after(async () => {
      await rm(folder, { recursive: true });
      await provider.close();
    });

    /** A spec over a folder with these files; `docker-compose.yaml` is the compose file. */
    async function composeSpec(
      files: Readonly<Record<string, string>>,
      overrides: Partial<EnvironmentSpec> & { readonly mainImage?: string | null } = {},
    ): Promise<EnvironmentSpec> {
      const { mainImage = baseImage, ...rest } = overrides;
      const contextDir = await mkdtemp(join(folder, 'task-'));
      for (const [name, text] of Object.entries(files)) {
        await mkdir(join(contextDir, name, '..'), { recursive: true });
        await writeFile(join(contextDir, name), text);
      }
      const composeFiles = [join(contextDir, 'docker-compose.yaml')];
      const contextHash = lowerId(24);
      const image = { kind: 'compose', contextDir, contextHash, composeFiles, mainImage } as const;
      return dockerSpec({ image, network: { mode: 'public' }, ...rest });
    }

    async function withProject(
      spec: EnvironmentSpec,
      work: (environment: Environment) => Promise<void>,
    ): Promise<void> {
      const environment = provider.environment(spec);
      try {
        await environment.start({ signal });
        await work(environment);
      } finally {
        await environment.destroy();
      }
      const label = ['--quiet', '--filter', `label=slipway.name=${spec.name}`];
      for (const kind of ['container', 'network', 'volume'])
        assert.equal(
          await docker(kind, 'ls', ...(kind === 'container' ? ['--all'] : []), ...label),
          '',
        );
    }

    const withSide = [
      'services:',
      '  main:',
      '    environment:',
      '      OF_FILE: "file $$5 ${OF_TASK}"',
      '    container_name: taken-by-every-attempt',
      '  side:',
      `    image: ${baseImage}`,
      '    container_name: taken-by-every-attempt-too',
      '    ports: ["127.0.0.1:18431:8080"]',
      '    command: ["perl", "/server.pl"]',
      '    init: true',
      '    volumes:',
      '      - ./server.pl:/server.pl:ro',
      '      - kept:/kept',
      '    healthcheck:',
      '      test: ["CMD", "sh", "-c", "test -d /kept"]',
      '      interval: 1s',
      'volumes:',
      '  kept: {}',
    ].join('\n');
    const files = { 'docker-compose.yaml': withSide, 'server.pl': server };

    test('attempts of one task run side by side, although the file fixes names and ports', async () => {
      const limits = { cpus: 1, memoryMb: 128, storageMb: null, pids: 50 };
      const specs = await Promise.all(
        [1, 2].map(() =>
          composeSpec(files, { env: { OF_TASK: 'costs $HOME' }, workdir: '/made', limits }),
        ),
      );
      await Promise.all(
        specs.map((spec) =>
          withProject(spec, async (environment) => {
            assert.equal(await output(environment, ask('side')), 'from the side');
            assert.equal(await output(environment, 'echo "$OF_TASK"; pwd'), 'costs $HOME\n/made');
            assert.equal(await output(environment, 'echo "$OF_FILE"'), 'file $5 costs $HOME');
            const id = await docker(
              'ps',
              '-q',
              '--filter',
              `label=slipway.name=${spec.name}`,
              '--filter',
              'label=com.docker.compose.service=main',
            );
            const limit = '{{.HostConfig.Memory}} {{.HostConfig.PidsLimit}} {{.HostConfig.Init}}';
            assert.equal(
              await docker('inspect', '--format', limit, id),
              `${128 * 2 ** 20} 50 true`,
            );
          }),
        ),
      );
    });

    test('without a network services reach each other and nothing else, under all their names', async () => {
      const listener = createServer((_request, response) => response.end('of the host'));
      listener.listen(0, '0.0.0.0');
      await once(listener, 'listening');
      let requests = 0;
      listener.on('request', () => (requests += 1));
      const { port } = listener.address() as AddressInfo;
      const [hostAddress] = await docker(
        'network',
        'inspect',
        'bridge',
        '--format',
        '{{(index .IPAM.Config 0).Gateway}}',
      ).then((text) => text.split('\n'));
      const spec = await composeSpec(files, { network: { mode: 'no-network' } });
      try {
        await withProject(spec, async (environment) => {
          assert.equal(await output(environment, ask('side')), 'from the side');
          const gateway = await docker(
            'network',
            'inspect',
            spec.name,
            '--format',
            '{{(index .IPAM.Config 0).Gateway}}',
          );
          const dial = [gateway, hostAddress].map(
            (host) =>
              `timeout 2 bash -c 'exec 3<>/dev/tcp/${host}/${port}; printf "GET / HTTP/1.0\\r\\n\\r\\n" >&3; cat <&3'`,
          );
          const command = `${dial.join('; ')}; true`;
          const seen = await output(environment, command);
          const side = await environment.service('side').exec({ command }, signal);
          if (process.getuid?.() === 0)
            assert.deepEqual([seen, side.stdout, requests], ['', '', 0]);
          const internal = await docker(
            'network',
            'inspect',
            spec.name,
            '--format',
            '{{.Internal}}',
          );
          assert.equal(internal, 'true');
        });
      } finally {
        listener.closeAllConnections();
        listener.close();
      }
    });

    test('the policy of a whole project is switched, and main and services follow', async () => {
      const spec = await composeSpec(files, {
        network: { mode: 'public' },
        laterNetworks: [{ mode: 'no-network' }, { mode: 'allowlist', hosts: [] }],
      });
      const interfaces = 'grep -c eth /proc/net/dev';
      await withProject(spec, async (environment) => {
        const side = environment.service('side');
        const count = async (): Promise<string[]> => [
          await output(environment, interfaces),
          (await side.exec({ command: interfaces }, signal)).stdout.trim(),
        ];
        assert.deepEqual(await count(), ['2', '2']);
        await environment.setNetworkPolicy({ mode: 'no-network' }, signal);
        assert.deepEqual(await count(), ['1', '1']);
        assert.equal(await output(environment, ask('side')), 'from the side');
        await environment.setNetworkPolicy({ mode: 'public' }, signal);
        assert.deepEqual(await count(), ['2', '2']);
      });
    });

    test('under an allow list the proxy is for the outside, services are reached straight', async () => {
      const spec = await composeSpec(files, { network: { mode: 'allowlist', hosts: [] } });
      await withProject(spec, async (environment) => {
        const [proxy, direct] = (await output(environment, 'echo "$http_proxy $NO_PROXY"')).split(
          ' ',
        );
        assert.match(proxy ?? '', /^http:\/\/10\./);
        for (const name of ['main', 'side', 'localhost'])
          assert.ok(direct?.split(',').includes(name), name);
        assert.equal(await output(environment, ask('side')), 'from the side');
        const { stdout } = await environment
          .service('side')
          .exec({ command: 'echo "$https_proxy"' }, signal);
        assert.equal(stdout.trim(), proxy);
      });
    });

    test('images of main and of services are built as any other, each once for its content', async () => {
      const compose = [
        'services:',
        '  side:',
        '    build:',
        '      context: ./side',
        '      args: { WORD: "of the arguments" }',
        '    command: sleep 600',
        '    init: true',
        '  inline:',
        '    build:',
        '      context: ./side',
        '      dockerfile_inline: |',
        `        FROM ${baseImage}`,
        '        RUN echo inline > /made',
        '    command: sleep 600',
        '    init: true',
      ].join('\n');
      const spec = await composeSpec(
        {
          'docker-compose.yaml': compose,
          Dockerfile: `FROM ${baseImage}\nRUN echo of main > /made\n`,
          'side/Dockerfile': `FROM ${baseImage}\nARG WORD\nRUN echo "$WORD" > /made\n`,
        },
        { mainImage: null },
      );
      await withProject(spec, async (environment) => {
        assert.equal(await output(environment, 'cat /made'), 'of main');
        for (const [name, made] of [
          ['side', 'of the arguments'],
          ['inline', 'inline'],
        ] as const) {
          const result = await environment.service(name).exec({ command: 'cat /made' }, signal);
          assert.equal(result.stdout.trim(), made);
        }
        const again = provider.environment({ ...spec, name: `${spec.name}-again` });
        try {
          const { imageMs } = await again.start({ signal });
          assert.ok(imageMs < 5_000);
        } finally {
          await again.destroy();
        }
      });
      assert.ok(spec.image.kind === 'compose');
      const tag = `slipway-build:${spec.image.contextHash}`;
      await docker('rmi', '--force', tag, `${tag}-side`, `${tag}-inline`);
    });

    for (const [title, compose, code] of [
      ['is not YAML', 'services: [', 'ENVIRONMENT_START_FAILED'],
      [
        'has a service that does not stay up',
        `services:\n  bad:\n    image: ${baseImage}\n    command: sh -c "exit 3"\n`,
        'ENVIRONMENT_START_FAILED',
      ],
      [
        'names an image that is nowhere',
        'services:\n  bad:\n    image: registry.invalid/none:1\n',
        'IMAGE_NOT_FOUND',
      ],
    ] as const)
      test(`a compose file that ${title} ends as ${code} and leaves nothing`, async () => {
        const spec = await composeSpec({ 'docker-compose.yaml': compose });
        await assert.rejects(
          withProject(spec, async () => assert.fail('it started')),
          (error) => isRolloutError(error, code) && error.remedy !== null,
        );
        assert.ok(!(await provider.list(signal)).some(({ name }) => name === spec.name));
      });

    test('a start that is given up in the middle leaves nothing', async () => {
      for (const afterMs of [300, 900, 1800]) {
        const spec = await composeSpec(files);
        const environment = provider.environment(spec);
        using link = new LinkedAbort([], { ms: afterMs, reason: () => new Error('given up') });
        await environment.start({ signal: link.signal }).catch(() => undefined);
        await environment.destroy();
        const label = `label=com.docker.compose.project=${spec.name}`;
        for (const kind of ['container', 'network', 'volume'])
          assert.equal(
            await docker(
              kind,
              'ls',
              ...(kind === 'container' ? ['--all'] : []),
              '-q',
              '--filter',
              label,
            ),
            '',
            `${kind} after ${afterMs} ms`,
          );
      }
    });
  },
);
