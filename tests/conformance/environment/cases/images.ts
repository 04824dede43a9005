import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { isRolloutError } from '../../../../src/core/errors.ts';
import type { Environment, ImageSource } from '../../../../src/environments/environment.ts';
import type { CaseBench, ConformanceCase } from '../adapter.ts';
import { eventually, output } from '../looking.ts';

/** A build context of this case with a content of its own, so that no earlier run has built it. */
async function dockerfile(bench: CaseBench, lines: readonly string[]): Promise<ImageSource> {
  const contextDir = join(bench.folder, 'context');
  await mkdir(contextDir, { recursive: true });
  const unique = randomUUID().replaceAll('-', '');
  await writeFile(join(contextDir, 'hello.txt'), `hello ${unique}\n`);
  const text = [`FROM ${bench.adapter.image}`, `LABEL unique=${unique}`, ...lines].join('\n');
  await writeFile(join(contextDir, 'Dockerfile'), `${text}\n`);
  const contextHash = unique.padEnd(64, '0');
  bench.defer(async () => {
    await bench.adapter.forgetImage?.(contextHash);
  });
  return { kind: 'dockerfile', contextDir, contextHash };
}

const freshStamp = 'RUN cat /proc/sys/kernel/random/uuid > /stamp';

async function startFailure(environment: Environment, signal: AbortSignal): Promise<unknown> {
  return await environment.start({ signal }).then(
    () => assert.fail('start resolved'),
    (error: unknown) => error,
  );
}

export const imageCases: readonly ConformanceCase[] = [
  {
    id: 'image.build',
    title: 'an image is built from a Dockerfile: its RUN, COPY, ENV and WORKDIR take effect',
    needs: 'build',
    limitMs: 120_000,
    async run(bench) {
      const image = await dockerfile(bench, [
        'ENV GREETING="good day"',
        'WORKDIR /srv/work',
        'COPY hello.txt ./copied.txt',
        'RUN echo "$GREETING" > ran.txt',
      ]);
      const environment = await bench.start({ image });
      const seen = await output(
        environment,
        'pwd; cat ran.txt; echo "$GREETING"; cat copied.txt',
        bench.signal,
      );
      assert.match(seen, /^\/srv\/work\ngood day\ngood day\nhello [0-9a-f]{32}$/);
    },
  },
  {
    id: 'image.user',
    title: 'the USER of the image is the default user of commands',
    needs: 'build',
    limitMs: 120_000,
    async run(bench) {
      const image = await dockerfile(bench, ['USER nobody']);
      const environment = await bench.start({ image });
      assert.equal(await output(environment, 'id -un', bench.signal), 'nobody');
      const asRoot = await environment.exec({ command: 'id -u', user: 'root' }, bench.signal);
      assert.equal(asRoot.stdout, '0\n');
      const channel = await environment.openControl({ signal: bench.signal });
      assert.equal((await channel.exec({ command: 'id -un' }, bench.signal)).stdout, 'nobody\n');
      await channel.close();
    },
  },
  {
    id: 'image.entrypoint',
    title: 'the ENTRYPOINT of the image runs and sees the variables of the spec',
    needs: 'build',
    limitMs: 120_000,
    async run(bench) {
      const script = String.raw`#!/bin/sh\nprintenv OF_SPEC > /seen\nexec "$@"\n`;
      const image = await dockerfile(bench, [
        `RUN printf '${script}' > /entry.sh && chmod 755 /entry.sh`,
        'ENTRYPOINT ["/entry.sh"]',
      ]);
      const environment = await bench.start({ image, env: { OF_SPEC: 'seen by entrypoint' } });
      const command = 'cat /seen 2>/dev/null || true';
      await eventually('the entrypoint ran', async () => {
        return (await output(environment, command, bench.signal)) === 'seen by entrypoint';
      });
    },
  },
  {
    id: 'image.single-flight',
    title: 'two starts at once build one image, and a third start finds it ready',
    needs: 'build',
    limitMs: 120_000,
    async run(bench) {
      const image = await dockerfile(bench, [freshStamp]);
      const both = await Promise.all([bench.start({ image }), bench.start({ image })]);
      const third = await bench.start({ image });
      const stamps = await Promise.all(
        [...both, third].map((environment) => output(environment, 'cat /stamp', bench.signal)),
      );
      assert.equal(new Set(stamps).size, 1, stamps.join());
    },
  },
  {
    id: 'image.build-fails',
    title: 'a Dockerfile that does not build is IMAGE_BUILD_FAILED with the end of its log',
    needs: 'build',
    limitMs: 120_000,
    async run(bench) {
      const image = await dockerfile(bench, ['RUN echo tell-tale-line && exit 23']);
      const error = await startFailure(bench.create({ image }), bench.signal);
      assert.ok(isRolloutError(error, 'IMAGE_BUILD_FAILED'), String(error));
      assert.match(error.detail ?? '', /tell-tale-line/);
    },
  },
  {
    id: 'image.negative-cache',
    title: 'a build that failed is not tried again at once: siblings get the same failure',
    needs: 'build',
    limitMs: 120_000,
    async run(bench) {
      const image = await dockerfile(bench, ['RUN cat /proc/sys/kernel/random/uuid && exit 1']);
      const details: string[] = [];
      for (let attempt = 0; attempt < 2; attempt += 1) {
        const error = await startFailure(bench.create({ image }), bench.signal);
        assert.ok(isRolloutError(error, 'IMAGE_BUILD_FAILED'), String(error));
        details.push(error.detail ?? '');
      }
      assert.match(details[0]!, /[0-9a-f]{8}-[0-9a-f]{4}-/);
      assert.equal(details[1], details[0]);
    },
  },
  {
    id: 'image.absent-base',
    title: 'a Dockerfile whose base image is nowhere fails with a code of images',
    needs: 'build',
    limitMs: 120_000,
    async run(bench) {
      const image = await dockerfile(bench, []);
      if (image.kind !== 'dockerfile') assert.fail();
      const text = 'FROM slipway.invalid/absent:none\nRUN true\n';
      await writeFile(join(image.contextDir, 'Dockerfile'), text);
      const error = await startFailure(bench.create({ image }), bench.signal);
      assert.ok(
        isRolloutError(error, 'IMAGE_NOT_FOUND') || isRolloutError(error, 'IMAGE_BUILD_FAILED'),
        String(error),
      );
    },
  },
  {
    id: 'image.build-aborted',
    title: 'a signal during the build rejects with its reason at once',
    needs: 'build',
    limitMs: 120_000,
    async run(bench) {
      const image = await dockerfile(bench, ['RUN sleep 60']);
      const environment = bench.create({ image });
      const controller = new AbortController();
      const starting = environment.start({ signal: controller.signal });
      starting.catch(() => undefined);
      const reason = new Error('no longer wanted');
      setTimeout(() => controller.abort(reason), 1_500);
      await assert.rejects(starting, reason);
    },
  },
];
