import assert from 'node:assert/strict';
import { execFile, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, realpathSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';
import { promisify } from 'node:util';
import { isNewEnough, natsServerPath } from '../../scripts/setup/nats-server.js';

const execute = promisify(execFile);
const root = path.resolve(import.meta.dirname, '../..');

interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

function end(program: string, argv: readonly string[], env: NodeJS.ProcessEnv = {}): Ended {
  const options = {
    cwd: root,
    encoding: 'utf8',
    timeout: 60_000,
    env: { ...process.env, ...env },
  } as const;
  const { status, stdout, stderr } = spawnSync(program, argv, options);
  return { code: status, stdout, stderr };
}

/** Programs that set-up looks for and that are hidden from it here. */
const hidden = ['runc', 'buildah', 'slirp4netns', 'mmdebstrap', 'dockerd', 'sudo'];

function placesOf(program: string): readonly string[] {
  const dirs = ['/usr/local/sbin', '/usr/local/bin', '/usr/sbin', '/usr/bin', '/sbin', '/bin'];
  return dirs.map((dir) => path.join(dir, program));
}

/** Arguments of bwrap for "this machine, as a plain user, without these programs and without Docker". */
function plainUser(cacheDir: string): readonly string[] {
  const masks = [...hidden.flatMap(placesOf), '/var/run/docker.sock']
    .filter((file) => existsSync(file))
    .map((file) => realpathSync(file));
  return [
    ...['--bind', '/', '/', '--dev', '/dev', '--proc', '/proc', '--bind', cacheDir, cacheDir],
    ...[...new Set(masks)].flatMap((file) => ['--bind', '/dev/null', file]),
    ...['--unshare-user', '--uid', '12345', '--gid', '12345', '--die-with-parent', '--'],
  ];
}

const bwrapWorks = end('bwrap', ['--bind', '/', '/', '--unshare-user', 'true']).code === 0;

describe(
  'set-up for a user who may not install anything',
  {
    skip: bwrapWorks ? false : 'bubblewrap cannot run here, so there is no way to play that user',
  },
  () => {
    let cacheDir = '';
    let ended: Ended = { code: null, stdout: '', stderr: '' };

    before(async () => {
      cacheDir = await mkdtemp(path.join(os.tmpdir(), 'slipway-setup-'));
      const argv = [process.execPath, 'scripts/setup/main.js', 'local', 'docker'];
      ended = end('bwrap', [...plainUser(cacheDir), ...argv], {
        SLIPWAY_CACHE_DIR: cacheDir,
        DOCKER_HOST: '',
      });
    });

    after(async () => {
      await rm(cacheDir, { recursive: true, force: true });
    });

    it('ends with 1 and without a stack trace', () => {
      assert.equal(ended.code, 1, ended.stderr);
      assert.doesNotMatch(ended.stdout + ended.stderr, /^\s+at /m);
    });

    it('gives an administrator one command with every package', () => {
      const command = /^ +(apt-get update && apt-get install .*)$/m.exec(ended.stdout)?.[1] ?? '';
      for (const name of ['runc', 'buildah', 'slirp4netns', 'docker.io', 'mmdebstrap']) {
        assert.ok(command.split(' ').includes(name), `${name} is not in: ${command}`);
      }
    });

    it('says what each is for, and what works without them', () => {
      assert.match(ended.stdout, /- buildah: images from Dockerfiles/);
      assert.match(ended.stdout, /What works without them:\n +- reading and checking tasks/);
    });

    it('goes on to the steps behind, each with its own remedy', () => {
      assert.match(ended.stdout, /^docker +not done/m);
      assert.match(ended.stdout, /systemctl start docker/);
      assert.match(ended.stdout, /^base image +not done/m);
    });
  },
);

describe('the base image made from packages', () => {
  const cacheDir =
    process.env['SLIPWAY_CACHE_DIR'] ??
    path.join(process.env['XDG_CACHE_HOME'] ?? path.join(os.homedir(), '.cache'), 'slipway');
  const archive = path.join(cacheDir, 'base-images', 'debian-bookworm-slim.2.tar');
  const skip = existsSync(archive) ? false : 'a registry gave the image, so none was made';

  it('is a Docker archive whose names are its digests', { skip }, async () => {
    const read = async (name: string): Promise<Buffer> => {
      const options = { encoding: 'buffer', maxBuffer: 1 << 30 } as const;
      return (await execute('tar', ['--extract', '--to-stdout', '-f', archive, name], options))
        .stdout;
    };
    const sha256 = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex');
    const [image, ...others] = JSON.parse((await read('manifest.json')).toString()) as {
      Config: string;
      RepoTags: string[];
      Layers: string[];
    }[];
    assert.ok(image && others.length === 0);
    assert.deepEqual(image.RepoTags, ['debian:bookworm-slim']);
    const config = await read(image.Config);
    assert.equal(image.Config, `${sha256(config)}.json`);
    const { rootfs } = JSON.parse(config.toString()) as { rootfs: { diff_ids: string[] } };
    const layers = await Promise.all(image.Layers.map(read));
    assert.deepEqual(
      layers.map((layer) => `sha256:${sha256(layer)}`),
      rootfs.diff_ids,
    );
  });
});

describe('the server of the queue between hosts', () => {
  const cases = [
    { version: '2.10.27', isNew: true },
    { version: '2.10.28', isNew: true },
    { version: '2.11.0', isNew: true },
    { version: '3.0.0', isNew: true },
    { version: '2.10.26', isNew: false },
    { version: '2.9.99', isNew: false },
    { version: '1.99.99', isNew: false },
    { version: null, isNew: false },
  ];
  for (const { version, isNew } of cases) {
    it(`is ${isNew ? 'taken' : 'not taken'} when its version is ${version ?? 'not told'}`, () => {
      assert.equal(isNewEnough(version), isNew);
    });
  }

  it('is looked for on PATH first, and an old one there is passed over', async () => {
    const dir = await mkdtemp(path.join(os.tmpdir(), 'slipway-nats-'));
    const before = process.env['PATH'];
    try {
      process.env['PATH'] = dir;
      const fake = path.join(dir, 'nats-server');
      await writeFile(fake, '#!/bin/sh\necho nats-server: v2.9.10\n', { mode: 0o755 });
      assert.notEqual(await natsServerPath(), fake);
      await writeFile(fake, '#!/bin/sh\necho nats-server: v2.12.1\n', { mode: 0o755 });
      assert.equal(await natsServerPath(), fake);
    } finally {
      process.env['PATH'] = before;
      await rm(dir, { recursive: true, force: true });
    }
  });
});

describe('npm run quickstart', () => {
  it('names what it can show', () => {
    const { code, stderr } = end(process.execPath, ['scripts/quickstart.js', '--show', 'moon']);
    assert.equal(code, 2);
    assert.match(stderr, /expected collect or server or agents or tasks/);
  });

  it('refuses what it does not know, before it sets anything up', () => {
    for (const argv of [['--env', 'moon'], ['--show', 'stars'], ['--speed']]) {
      const { code, stdout } = end(process.execPath, ['scripts/quickstart.js', ...argv]);
      assert.deepEqual({ code, stdout }, { code: 2, stdout: '' });
    }
  });
});
