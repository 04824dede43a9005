/** The docker environment against the real engine, beyond what the conformance suite of all environments asks. */
import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { connect, createServer as createNetServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { once } from 'node:events';
import { promisify } from 'node:util';
import { isRolloutError } from '../../../src/core/errors.ts';
import { lowerId } from '../../../src/core/ids.ts';
import { LinkedAbort, never } from '../../../src/core/linked-abort.ts';
import type { DockerOptions, DockerPorts } from '../../../src/environments/docker/options.ts';
import { DockerProvider } from '../../../src/environments/docker/docker-provider.ts';
import { bridgeName } from '../../../src/environments/docker/sandbox-names.ts';
import { NamespaceControl } from '../../../src/environments/docker/processes/namespace-control.ts';
import { EngineClient } from '../../../src/environments/docker/engine/engine-client.ts';
import { parseEngineEndpoint } from '../../../src/environments/docker/engine/engine-endpoint.ts';
import type { Environment, EnvironmentSpec } from '../../../src/environments/environment.ts';
import { baseImage, dockerSpec } from './docker-spec.ts';

const run = promisify(execFile);
const socket = '/var/run/docker.sock';
const signal = never;

async function docker(...args: readonly string[]): Promise<string> {
  return (await run('docker', args)).stdout.trim();
}

async function withProvider(
  work: (provider: DockerProvider) => Promise<void>,
  options: DockerOptions = {},
  ports: Partial<DockerPorts> = {},
): Promise<void> {
  const provider = new DockerProvider(options, ports);
  try {
    await provider.preflight(signal);
    await work(provider);
  } finally {
    await provider.close();
  }
}

function withSandbox(
  spec: Partial<EnvironmentSpec>,
  work: (environment: Environment, provider: DockerProvider) => Promise<void>,
  options: DockerOptions = {},
  ports: Partial<DockerPorts> = {},
): Promise<void> {
  return withProvider(
    async (provider) => {
      const environment = provider.environment(dockerSpec(spec));
      try {
        await environment.start({ signal });
        await work(environment, provider);
      } finally {
        await environment.destroy();
      }
    },
    options,
    ports,
  );
}

async function output(environment: Environment, command: string): Promise<string> {
  return (await environment.exec({ command }, signal)).stdout.trim();
}

const isSkipped = existsSync(socket) ? false : 'no Docker engine';

describe('docker environment', { skip: isSkipped, concurrency: 1 }, () => {
  let folder = '';
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'slipway-docker-'));
  });
  after(async () => {
    await rm(folder, { recursive: true });
  });

  test('a foreign container of the very name is neither taken over nor removed', () =>
    withProvider(async (provider) => {
      const spec = dockerSpec();
      const foreign = await docker(
        'run',
        '--detach',
        '--name',
        spec.name,
        baseImage,
        'sleep',
        '60',
      );
      try {
        const environment = provider.environment(spec);
        await assert.rejects(environment.start({ signal }), (error) =>
          isRolloutError(error, 'ENVIRONMENT_START_FAILED'),
        );
        await environment.destroy();
        await provider.destroyByName(spec.name);
        assert.equal(await docker('inspect', '--format', '{{.State.Running}}', foreign), 'true');
        const listed = await provider.list(signal);
        assert.ok(!listed.some(({ name }) => name === spec.name));
      } finally {
        await docker('rm', '--force', foreign);
      }
    }));

  test('a sandbox is not reported as gone while the engine may still create it', async () => {
    const held = Promise.withResolvers<undefined>();
    const released = Promise.withResolvers<undefined>();
    const slow = createNetServer((client) => {
      const engine = connect(socket);
      client.on('error', () => engine.destroy());
      engine.on('error', () => client.destroy());
      engine.pipe(client);
      client.on('close', () => engine.destroy());
      client.on('data', (bytes: Buffer) => {
        if (!/^POST \S*\/containers\/create/.test(bytes.toString('latin1'))) engine.write(bytes);
        else {
          held.resolve(undefined);
          void released.promise.then(() => engine.write(bytes));
        }
      });
    });
    slow.listen(0, '127.0.0.1');
    await once(slow, 'listening');
    const { port } = slow.address() as AddressInfo;
    try {
      await withProvider(
        async (provider) => {
          const environment = provider.environment(dockerSpec());
          const starting = environment.start({ signal });
          starting.catch(() => undefined);
          await held.promise;
          await assert.rejects(environment.destroy({ deadlineMs: 2_000 }), (error) =>
            isRolloutError(error, 'ENVIRONMENT_DESTROY_FAILED'),
          );
          released.resolve(undefined);
          await environment.destroy();
          await assert.rejects(starting);
          const filter = `name=${environment.name}`;
          assert.equal(await docker('ps', '--all', '--quiet', '--filter', filter), '');
        },
        { host: `tcp://127.0.0.1:${port}` },
      );
    } finally {
      released.resolve(undefined);
      slow.close();
    }
  });

  test('more sandboxes than the engine has address pools can have networks of their own', () =>
    withProvider(async (provider) => {
      const count = 36;
      const labels = dockerSpec().labels;
      const engine = new EngineClient(parseEngineEndpoint(`unix://${socket}`, null));
      const { SandboxNetwork } =
        await import('../../../src/environments/docker/network/sandbox-network.ts');
      const prefix = `docker-test-${lowerId(6)}`;
      const names = Array.from({ length: count }, (_, index) => `${prefix}-${index}`);
      try {
        for (const sandbox of names) {
          const network = new SandboxNetwork({
            engine,
            logger: { log: () => undefined },
            sandbox,
            labels,
            pool: '10.213.0.0/16',
            prefix: 29,
            resolveName: null,
            allowLocalEgress: false,
          });
          await network.open({
            policy: { mode: 'no-network' },
            wantsProxy: false,
            hostEndpoint: null,
          });
          await network.close();
        }
        const found = (await provider.list(signal)).filter(({ name }) => name.startsWith(prefix));
        assert.equal(found.length, count);
      } finally {
        engine.close();
        for (const name of names) await provider.destroyByName(name);
      }
      assert.equal(await docker('network', 'ls', '--quiet', '--filter', `name=${prefix}`), '');
    }));

  test('an allowed name is reached through the proxy, and the sandbox asks no name server itself', async () => {
    const server = createServer((_request, response) => response.end('from the named host'));
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const asked: string[] = [];
    const resolveName = (name: string): Promise<string[]> => {
      asked.push(name);
      return Promise.resolve(['127.0.0.1']);
    };
    const fetch = (host: string): string =>
      `p="\${http_proxy#http://}"; exec 3<>"/dev/tcp/\${p%:*}/\${p##*:}"; printf 'GET http://${host}:${port}/ HTTP/1.0\\r\\n\\r\\n' >&3; timeout 5 cat <&3`;
    try {
      await withSandbox(
        { network: { mode: 'allowlist', hosts: [{ kind: 'hostname', value: 'good.test' }] } },
        async (environment) => {
          assert.match(await output(environment, fetch('good.test')), /200 OK[^]*named host/);
          assert.match(await output(environment, fetch('bad.test')), /403 Forbidden/);
          const began = performance.now();
          const lookup = await environment.exec({ command: 'getent hosts good.test' }, signal);
          assert.equal(lookup.exitCode, 2);
          assert.ok(performance.now() - began < 5_000, 'a name is refused quickly');
          await environment.setNetworkPolicy({ mode: 'allowlist', hosts: [] }, signal);
          assert.match(await output(environment, fetch('good.test')), /403 Forbidden/);
        },
        {},
        { resolveName, allowLocalEgress: true },
      );
      assert.deepEqual(asked, ['good.test']);
    } finally {
      server.close();
    }
  });

  test('when this process dies, a sandbox under an allow list has no way out', async () => {
    const script = `
      import { DockerProvider } from ${JSON.stringify(join(import.meta.dirname, '../../../src/environments/docker/docker-provider.ts'))};
      const provider = new DockerProvider({});
      await provider.preflight(new AbortController().signal);
      const environment = provider.environment(JSON.parse(process.argv[1]));
      await environment.start({ signal: new AbortController().signal });
      console.log((await environment.exec({ command: 'echo $http_proxy' }, new AbortController().signal)).stdout);
      setInterval(() => {}, 1000);`;
    const spec = dockerSpec({ network: { mode: 'allowlist', hosts: [] } });
    const args = ['--input-type=module-typescript', '--eval', script, JSON.stringify(spec)];
    const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
    const [chunk] = (await once(child.stdout, 'data')) as [Buffer];
    const proxy = new URL(chunk.toString().trim());
    const dial = `timeout 3 bash -c 'exec 3<>/dev/tcp/${proxy.hostname}/${proxy.port}'`;
    await docker('exec', spec.name, 'bash', '-c', dial);
    child.kill('SIGKILL');
    await once(child, 'exit');
    await assert.rejects(docker('exec', spec.name, 'bash', '-c', dial));
    await withProvider(async (provider) => {
      await provider.destroyByName(spec.name);
      assert.deepEqual(
        (await provider.list(signal)).filter(({ name }) => name === spec.name),
        [],
      );
    });
    if (process.getuid?.() === 0) {
      const { stdout } = await run('iptables', ['-w', '5', '-S', 'INPUT']);
      assert.ok(!stdout.includes(bridgeName(spec.name)));
    }
  });

  test('a fork bomb at the limit of processes is killed from inside too, and the sandbox lives on', () =>
    withSandbox(
      { limits: { cpus: 1, memoryMb: 256, storageMb: null, pids: 40 } },
      async (environment, provider) => {
        assert.equal(provider.kind, 'docker');
        const engine = new EngineClient(parseEngineEndpoint(`unix://${socket}`, null));
        const control = new NamespaceControl({ engine, containerId: environment.name }, 40);
        try {
          await output(environment, 'sleep 301 >/dev/null 2>&1 &');
          const keep = await control.snapshot(signal);
          assert.equal(keep.keys.size, 1);
          const bomb = `$SIG{TERM}="IGNORE"; while (1) { my $p = fork; select undef, undef, undef, 0.01 unless defined $p }`;
          await output(environment, `setsid env -i perl -e '${bomb}' >/dev/null 2>&1 & sleep 0.3`);
          const receipt = await control.kill(keep, signal);
          assert.ok(receipt.killed >= 20, `${receipt.killed} killed`);
          assert.deepEqual(await control.snapshot(signal), keep);
          const living = `cat /proc/[0-9]*/cmdline | tr '\\0' ' '`;
          const programs = await docker('exec', environment.name, 'sh', '-c', living);
          assert.match(programs, /sleep 301/);
          assert.doesNotMatch(programs, /perl/);
          const limit = await docker(
            'inspect',
            '--format',
            '{{.HostConfig.PidsLimit}}',
            environment.name,
          );
          assert.equal(limit, '40');
        } finally {
          control.close();
          engine.close();
        }
      },
    ));

  test('an extra CA bundle is there while an image is built and in the sandbox, but not as its variables', async () => {
    const bundle = join(folder, 'ca.pem');
    await writeFile(bundle, '# the extra certificate\n');
    const contextDir = join(folder, 'ca-context');
    await run('mkdir', [contextDir]);
    const dockerfile = [
      `FROM ${baseImage}`,
      'RUN grep -q "the extra certificate" "$SSL_CERT_FILE" && echo "$PIP_CERT" > /seen',
    ];
    await writeFile(join(contextDir, 'Dockerfile'), dockerfile.join('\n'));
    const contextHash = lowerId(20);
    await withSandbox(
      { image: { kind: 'dockerfile', contextDir, contextHash } },
      async (environment) => {
        assert.equal(await output(environment, 'cat /seen'), '/etc/slipway/ca-certificates.pem');
        assert.match(await output(environment, 'tail -1 "$NODE_EXTRA_CA_CERTS"'), /extra/);
        const [image = ''] = (
          await docker('images', '--quiet', '--filter', `label=slipway.image=${contextHash}`)
        ).split('\n');
        assert.ok(
          !(await docker('inspect', '--format', '{{.Config.Env}}', image)).includes('CERT'),
        );
        await environment.destroy();
        await docker('rmi', '--force', image);
      },
      { extraCaBundle: bundle },
    );
  });

  test('an image whose entry point does not run its command ends as a start failure with its log', () =>
    withProvider(async (provider) => {
      const contextDir = join(folder, 'bad-entry');
      await run('mkdir', [contextDir]);
      const dockerfile = `FROM ${baseImage}\nENTRYPOINT ["sh", "-c", "echo it cannot go on; exit 9"]\n`;
      await writeFile(join(contextDir, 'Dockerfile'), dockerfile);
      const image = { kind: 'dockerfile', contextDir, contextHash: lowerId(20) } as const;
      const environment = provider.environment(dockerSpec({ image }));
      try {
        await assert.rejects(
          environment.start({ signal }),
          (error) =>
            isRolloutError(error, 'ENVIRONMENT_START_FAILED') &&
            error.detail?.includes('it cannot go on') === true,
        );
      } finally {
        await environment.destroy();
        await docker('rmi', '--force', `slipway-build:${image.contextHash}`);
      }
    }));

  test('a build that is given up ends, and leaves no container', () =>
    withProvider(async (provider) => {
      const contextDir = join(folder, 'slow-build');
      await run('mkdir', [contextDir]);
      const marker = `31.${Math.floor(Math.random() * 1e9)}`;
      await writeFile(join(contextDir, 'Dockerfile'), `FROM ${baseImage}\nRUN sleep ${marker}\n`);
      const image = { kind: 'dockerfile', contextDir, contextHash: lowerId(20) } as const;
      const environment = provider.environment(dockerSpec({ image }));
      using link = new LinkedAbort([]);
      const lines: string[] = [];
      const starting = environment.start({
        signal: link.signal,
        onProgress: (line) => {
          lines.push(line);
          if (line.includes('Running in')) setTimeout(() => link.abort(new Error('given up')), 300);
        },
      });
      await assert.rejects(starting, /given up/, lines.join('\n'));
      await environment.destroy();
      // With those not yet started: the engine starts the container of a build that was just given up, and removes it then.
      const left = async (): Promise<readonly string[]> =>
        (await docker('ps', '--all', '--no-trunc', '--format', '{{.Status}} {{.Command}}'))
          .split('\n')
          .filter((line) => line.includes(marker));
      for (let tries = 0; tries < 50 && (await left()).length > 0; tries += 1)
        await new Promise((resolve) => setTimeout(resolve, 200));
      assert.deepEqual(await left(), []);
    }));

  test('a shell for a user who does not exist is refused with what the engine says', () =>
    withSandbox({}, async (environment) => {
      await assert.rejects(
        environment.openControl({ user: 'nobody-of-that-name', signal }),
        (error) =>
          isRolloutError(error, 'EXEC_FAILED') && error.message.includes('nobody-of-that-name'),
      );
    }));

  test('without an engine the preflight says what is missing and how to get it', async () => {
    const provider = new DockerProvider({ host: `unix://${folder}/absent.sock` });
    await assert.rejects(
      provider.preflight(signal),
      (error) => isRolloutError(error, 'ENVIRONMENT_UNAVAILABLE') && error.remedy !== null,
    );
    await provider.close();
  });
});
