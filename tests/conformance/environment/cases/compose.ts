import assert from 'node:assert/strict';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import type { ImageSource } from '../../../../src/environments/environment.ts';
import type { CaseBench, ConformanceCase } from '../adapter.ts';
import { eventually, output } from '../looking.ts';

/** Answers every connection to port 8080 with one line. */
const server = [
  'use IO::Socket::INET;',
  'my $s = IO::Socket::INET->new(LocalPort => 8080, Listen => 5, ReuseAddr => 1) or die;',
  'while (my $c = $s->accept) { my $line = <$c>; print $c "from the side\\n"; close $c }',
].join(' ');

async function composeImage(bench: CaseBench): Promise<ImageSource> {
  const contextDir = join(bench.folder, 'compose');
  await mkdir(contextDir);
  await writeFile(join(contextDir, 'server.pl'), server);
  const file = join(contextDir, 'docker-compose.yaml');
  const lines = [
    'services:',
    '  side:',
    `    image: ${bench.adapter.image}`,
    `    command: ["perl", "/server.pl"]`,
    '    environment:',
    '      - OF_SIDE=side value',
    '    volumes:',
    '      - ./server.pl:/server.pl:ro',
  ];
  await writeFile(file, `${lines.join('\n')}\n`);
  const contextHash = randomUUID().replaceAll('-', '').padEnd(64, '0');
  const mainImage = bench.adapter.image;
  return { kind: 'compose', contextDir, contextHash, composeFiles: [file], mainImage };
}

export const composeCases: readonly ConformanceCase[] = [
  {
    id: 'service.main',
    title: 'the service main is the sandbox itself',
    async run({ shared, folder, signal }) {
      const environment = await shared();
      await output(environment, 'echo of main > /of-main', signal);
      const main = environment.service('main');
      assert.equal((await main.exec({ command: 'cat /of-main' }, signal)).stdout, 'of main\n');
      await main.downloadFile('/of-main', join(folder, 'f'), signal);
      assert.equal(await readFile(join(folder, 'f'), 'utf8'), 'of main\n');
    },
  },
  {
    id: 'service.unknown',
    title: 'a service that does not exist is refused with a typed error',
    async run({ shared, provider, signal }) {
      const environment = await shared();
      const running = (async () =>
        environment.service('no-such').exec({ command: 'true' }, signal))();
      const code = provider.capabilities.compose
        ? /^(SERVICE_UNSUPPORTED|EXEC_FAILED)$/
        : /^SERVICE_UNSUPPORTED$/;
      await assert.rejects(running, (error: { code?: string }) => code.test(error.code ?? ''));
    },
  },
  {
    id: 'compose.side-service',
    title:
      'a side service runs beside the sandbox, is reached by its name, and can be used and stopped',
    needs: 'compose',
    limitMs: 120_000,
    async run(bench) {
      const { folder, signal } = bench;
      const environment = await bench.start({
        image: await composeImage(bench),
        network: { mode: 'public' },
      });
      assert.equal(await output(environment, 'echo main', signal), 'main');
      const ask = `${bench.probes.fetchDirect('side', 8080)} || true`;
      await eventually(
        'the side service answers',
        async () => {
          return (await output(environment, ask, signal)) === 'from the side';
        },
        15_000,
      );
      const side = environment.service('side');
      const result = await side.exec(
        { command: 'printenv OF_SIDE; mkdir /d; echo x > /d/file; exit 5' },
        signal,
      );
      assert.deepEqual([result.exitCode, result.stdout], [5, 'side value\n']);
      await side.downloadFile('/d/file', join(folder, 'file'), signal);
      await side.downloadDir('/d', join(folder, 'tree'), signal);
      assert.equal(await readFile(join(folder, 'tree', 'file'), 'utf8'), 'x\n');
      await side.stop(signal);
      assert.equal(await output(environment, ask, signal), '');
      assert.equal(await environment.isAlive(signal), true);
    },
  },
  {
    id: 'compose.main-stops-alone',
    title: 'when the sandbox itself is stopped its services run on, and its files can be copied',
    needs: 'compose',
    limitMs: 120_000,
    async run(bench) {
      const { folder, signal } = bench;
      const environment = await bench.start({
        image: await composeImage(bench),
        network: { mode: 'public' },
      });
      assert.equal(await output(environment, 'echo kept > /kept', signal), '');
      await environment.service('main').stop(signal);
      const side = environment.service('side');
      const { stdout } = await side.exec({ command: 'echo alive' }, signal);
      assert.equal(stdout, 'alive\n');
      await environment.downloadFile('/kept', join(folder, 'kept'), signal);
      assert.equal(await readFile(join(folder, 'kept'), 'utf8'), 'kept\n');
    },
  },
  {
    id: 'compose.destroy-by-name',
    title: 'another process removes a sandbox with side services by its name, all of them',
    needs: 'compose',
    limitMs: 120_000,
    async run(bench) {
      const environment = await bench.start({
        image: await composeImage(bench),
        network: { mode: 'public' },
      });
      const other = await bench.otherProvider();
      const listed = await other.list(bench.signal);
      assert.equal(listed.filter(({ name }) => name === environment.name).length, 1);
      await other.destroyByName(environment.name);
      assert.equal(await environment.isAlive(bench.signal), false);
    },
  },
];
