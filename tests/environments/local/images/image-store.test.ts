import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { existsSync, lstatSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { buffer } from 'node:stream/consumers';
import { after, test } from 'node:test';
import { gzipSync, zstdCompressSync } from 'node:zlib';
import * as tar from 'tar-stream';
import { systemClock } from '../../../../src/core/clock.ts';
import { never } from '../../../../src/core/linked-abort.ts';
import { ImageStore } from '../../../../src/environments/local/images/image-store.ts';
import { FileLocks } from '../../../../src/store/file/file-lock.ts';

const dir = mkdtempSync(path.join(tmpdir(), 'slipway-store-'));
after(() => rmSync(dir, { recursive: true, force: true }));
let count = 0;

function newStore(): ImageStore {
  count += 1;
  return new ImageStore(path.join(dir, `store-${count}`), new FileLocks(systemClock));
}

type Entry = Partial<tar.Header> & { readonly name: string; readonly content?: string };

async function tarOf(entries: readonly Entry[]): Promise<Buffer> {
  const pack = tar.pack();
  for (const { content, ...header } of entries) pack.entry(header, content ?? '');
  pack.finalize();
  return buffer(pack);
}

const sha = (bytes: Buffer | string): string => createHash('sha256').update(bytes).digest('hex');

async function archive(
  layers: readonly Buffer[],
  options: {
    readonly pack?: (layer: Buffer) => Buffer;
    readonly diffIds?: readonly string[];
    readonly tags?: readonly string[];
  } = {},
): Promise<string> {
  const config = JSON.stringify({
    architecture: 'amd64',
    config: { Env: ['A=1'], Entrypoint: ['/e'], User: 'bob', WorkingDir: '/w' },
    rootfs: { diff_ids: options.diffIds ?? layers.map((layer) => `sha256:${sha(layer)}`) },
  });
  const manifest = [
    {
      Config: 'config.json',
      RepoTags: options.tags ?? ['image:1'],
      Layers: layers.map((_layer, at) => `${at}.tar`),
    },
  ];
  const pack = options.pack ?? ((layer: Buffer) => layer);
  const stream = tar.pack();
  stream.entry({ name: 'config.json' }, config);
  for (const [at, layer] of layers.entries()) stream.entry({ name: `${at}.tar` }, pack(layer));
  stream.entry({ name: 'manifest.json' }, JSON.stringify(manifest));
  stream.finalize();
  count += 1;
  const file = path.join(dir, `archive-${count}.tar`);
  writeFileSync(file, await buffer(stream));
  return file;
}

const base = [
  { name: 'etc/', type: 'directory', mode: 0o755 },
  { name: 'etc/a', content: 'lower' },
  { name: 'etc/b', content: 'lower' },
] as const;

test('an image of an archive is found by its tag, with its configuration and layers from the highest down', async () => {
  const store = newStore();
  const layers = [await tarOf(base), await tarOf([{ name: 'etc/c', content: 'upper' }])];
  await store.loadArchive(await archive(layers), { signal: never });
  const image = await store.find('docker.io/library/image:1');
  assert.ok(image);
  assert.deepEqual(image.config.entrypoint, ['/e']);
  assert.equal(image.config.user, 'bob');
  const [top = '', bottom = ''] = image.layers;
  assert.equal(readFileSync(path.join(image.layersDir, top, 'etc/c'), 'utf8'), 'upper');
  assert.equal(readFileSync(path.join(image.layersDir, bottom, 'etc/a'), 'utf8'), 'lower');
  assert.equal(await store.find('image:2'), null);
});

for (const [name, pack] of [
  ['gzip', gzipSync],
  ['zstd', zstdCompressSync],
] as const)
  test(`layers compressed with ${name} are unpacked, and their digest is that of the plain bytes`, async () => {
    const store = newStore();
    const file = await archive([await tarOf(base)], { pack });
    const [image] = await store.loadArchive(file, { signal: never });
    assert.ok(image);
    assert.ok(existsSync(path.join(image.layersDir, image.layers[0] ?? '', 'etc/a')));
  });

test('a layer that differs from its digest is IMAGE_INVALID and leaves nothing', async () => {
  const store = newStore();
  const file = await archive([await tarOf(base)], { diffIds: [`sha256:${sha('other')}`] });
  await assert.rejects(store.loadArchive(file, { signal: never }), { code: 'IMAGE_INVALID' });
  assert.equal(await store.find('image:1'), null);
  assert.equal((await store.layerSizes()).size, 0);
});

test('a file that is no image archive is IMAGE_INVALID', async () => {
  const file = path.join(dir, 'no-archive.tar');
  writeFileSync(file, 'text');
  await assert.rejects(newStore().loadArchive(file, { signal: never }), { code: 'IMAGE_INVALID' });
});

test('members of a layer never land outside of it', async () => {
  const store = newStore();
  const layer = await tarOf([
    { name: 'link', type: 'symlink', linkname: '/tmp' },
    { name: '/absolute', content: 'x' },
    { name: '../../escaped', content: 'x' },
  ]);
  await store.loadArchive(await archive([layer]), { signal: never }).catch(() => undefined);
  assert.ok(!existsSync('/absolute'));
  assert.ok(!existsSync(path.join(dir, 'escaped')));
  assert.ok(!existsSync(path.join(store.layersDir, 'escaped')));
});

test('two loads at once unpack each layer once', async () => {
  const store = newStore();
  const file = await archive([await tarOf(base)]);
  const loads = await Promise.all([1, 2, 3].map(() => store.loadArchive(file, { signal: never })));
  assert.equal(new Set(loads.map(([image]) => image?.id)).size, 1);
});

test('known layers are listed with the size of their tar stream', async () => {
  const store = newStore();
  const layer = await tarOf(base);
  await store.loadArchive(await archive([layer]), { signal: never });
  assert.deepEqual([...(await store.layerSizes())], [[`sha256:${sha(layer)}`, layer.length]]);
});

test(
  'removals of a layer become devices 0:0, and the marks themselves disappear',
  { skip: process.getuid?.() === 0 ? false : 'needs root' },
  async () => {
    const store = newStore();
    const layer = await tarOf([
      { name: 'etc/', type: 'directory', mode: 0o750 },
      { name: 'etc/.wh.a', content: '' },
      { name: 'opt/', type: 'directory', mode: 0o700 },
      { name: 'opt/.wh..wh..opq', content: '' },
      { name: 'opt/new', content: 'x' },
    ]);
    const [image] = await store.loadArchive(await archive([layer]), { signal: never });
    assert.ok(image);
    const root = path.join(image.layersDir, image.layers[0] ?? '');
    const mark = lstatSync(path.join(root, 'etc/a'));
    assert.ok(mark.isCharacterDevice());
    assert.equal(mark.rdev, 0);
    assert.ok(!existsSync(path.join(root, 'etc/.wh.a')));
    assert.ok(!existsSync(path.join(root, 'opt/.wh..wh..opq')));
    assert.equal(lstatSync(path.join(root, 'opt')).mode & 0o777, 0o700);
    assert.equal(readFileSync(path.join(root, 'opt/new'), 'utf8'), 'x');
  },
);
