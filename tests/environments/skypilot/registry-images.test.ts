/** Images of Dockerfiles, built by the real docker and pushed to a real registry of this machine. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { chmod, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, describe, test } from 'node:test';
import { promisify } from 'node:util';
import { systemClock } from '../../../src/core/clock.ts';
import { isRolloutError } from '../../../src/core/errors.ts';
import { never } from '../../../src/core/linked-abort.ts';
import { compileSkyOptions, skyPorts } from '../../../src/environments/skypilot/options.ts';
import { RegistryImages } from '../../../src/environments/skypilot/registry-images.ts';
import { FileLocks } from '../../../src/store/file/file-lock.ts';
import { FastClock } from '../../fakes/fast-clock.ts';
import { forgetBuilt, ImageRegistry, whyNoPushes } from '../../support/image-registry.ts';

const run = promisify(execFile);
const how = { forceBuild: false, signal: never, onProgress: () => undefined };
const skip = (await whyNoPushes()) ?? false;

describe('images of Dockerfiles by a registry', { skip }, async () => {
  if (skip !== false) return;
  const registry = await ImageRegistry.start();
  const root = await mkdtemp(path.join(tmpdir(), 'slipway-pushes-'));
  const calls = path.join(root, 'calls');
  const hostVariables = { ...process.env, PATH: await countingPath(root, calls) };
  after(async () => {
    await registry[Symbol.asyncDispose]();
    await rm(root, { recursive: true, force: true });
  });

  /** As a process of this machine has them. */
  const images = (address = registry.address, isLocked = true): RegistryImages =>
    new RegistryImages(
      compileSkyOptions({ registry: `${address}/team`, builder: 'docker' }),
      skyPorts({
        hostVariables,
        clock: new FastClock(100),
        buildLocks: isLocked
          ? { locks: new FileLocks(systemClock), dir: path.join(root, 'locks') }
          : null,
      }),
    );

  /** How often docker was asked to build or to push something of this name. */
  const asked = async (verb: 'build' | 'push', name: string): Promise<number> =>
    (await readFile(calls, 'utf8'))
      .split('\n')
      .filter((line) => line.startsWith(`${verb} `) && line.includes(`/${name}:`)).length;

  async function dockerfile(name: string) {
    const contextDir = path.join(root, name, 'environment');
    await mkdir(contextDir, { recursive: true });
    await writeFile(path.join(contextDir, 'Dockerfile'), 'FROM scratch\nCOPY file /file\n');
    await writeFile(path.join(contextDir, 'file'), randomUUID());
    const contextHash = randomUUID().replaceAll('-', '').padEnd(64, '0');
    return { kind: 'dockerfile', contextDir, contextHash } as const;
  }

  test('two hundred asks of two processes build and push one image, which the registry has', async (t) => {
    const image = await dockerfile('asked-for');
    const [one, other] = [images(), images()];
    const references = await Promise.all(
      Array.from({ length: 200 }, (_, n) => (n % 2 === 0 ? one : other).ensure(image, how)),
    );
    const [reference = ''] = references;
    t.after(() => forgetBuilt(reference));
    assert.equal(new Set(references).size, 1);
    assert.deepEqual([await asked('build', 'asked-for'), await asked('push', 'asked-for')], [1, 1]);
    assert.deepEqual(registry.pushes, [reference.slice(registry.address.length + 1)]);
    assert.equal(await images().ensure(image, how), reference);
    assert.equal(await asked('build', 'asked-for'), 1, 'a later process builds it again');
    await images().ensure(image, { ...how, forceBuild: true });
    assert.equal(await asked('push', 'asked-for'), 2);
  });

  test('control: processes that take no turns build it more than once', async (t) => {
    const image = await dockerfile('without-turns');
    const [reference = ''] = await Promise.all(
      [0, 1].map(() => images(registry.address, false).ensure(image, how)),
    );
    t.after(() => forgetBuilt(reference));
    assert.equal(await asked('build', 'without-turns'), 2);
  });

  test('a build that fails leaves no container', async () => {
    const image = await dockerfile('broken');
    const program = `/missing-${randomUUID()}`;
    await writeFile(
      path.join(image.contextDir, 'Dockerfile'),
      `FROM scratch\nCOPY file /file\nRUN ["${program}"]\n`,
    );
    await assert.rejects(images().ensure(image, how), (error) =>
      isRolloutError(error, 'IMAGE_BUILD_FAILED'),
    );
    const format = ['--format', '{{.Command}}', '--no-trunc'];
    const { stdout } = await run('docker', ['ps', '--all', ...format]);
    assert.doesNotMatch(stdout, new RegExp(program));
  });

  test('a registry that takes no pushes is told with what to do, after a second try', async (t) => {
    const image = await dockerfile('not-taken');
    const refused = images('127.0.0.1:1').ensure(image, how);
    t.after(() => forgetBuilt('127.0.0.1:1/team/not-taken'));
    await assert.rejects(refused, (error) => {
      assert.ok(isRolloutError(error, 'IMAGE_BUILD_FAILED'), String(error));
      assert.equal(error.field, 'environment.kwargs.registry');
      assert.match(error.detail ?? '', /refused/);
      return error.retryable;
    });
    assert.equal(await asked('push', 'not-taken'), 2);
  });
});

/** A PATH on which `docker` writes down what it is asked before it does it. */
async function countingPath(root: string, calls: string): Promise<string> {
  const bin = path.join(root, 'bin');
  await mkdir(bin);
  await writeFile(calls, '');
  const { stdout } = await run('sh', ['-c', 'command -v docker']);
  const file = path.join(bin, 'docker');
  await writeFile(file, `#!/bin/sh\necho "$*" >>'${calls}'\nexec '${stdout.trim()}' "$@"\n`);
  await chmod(file, 0o755);
  return `${bin}:${process.env['PATH'] ?? ''}`;
}
