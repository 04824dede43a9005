import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { buffer } from 'node:stream/consumers';
import { test } from 'node:test';
import * as tar from 'tar-stream';
import {
  fullImageReference,
  ImageArchives,
  tagsOfArchive,
} from '../../../src/environments/shared/image-archives.ts';
import { TarIndex } from '../../../src/environments/shared/tar-index.ts';

async function archive(
  entries: readonly { name: string; content?: string; linkname?: string }[],
): Promise<Buffer> {
  const pack = tar.pack();
  for (const { name, content, linkname } of entries)
    if (linkname === undefined) pack.entry({ name }, content ?? '');
    else pack.entry({ name, type: 'symlink', linkname });
  pack.finalize();
  return buffer(pack);
}

const references = [
  ['debian', 'docker.io/library/debian:latest'],
  ['debian:bookworm-slim', 'docker.io/library/debian:bookworm-slim'],
  ['org/tool:1', 'docker.io/org/tool:1'],
  ['localhost/x', 'localhost/x:latest'],
  ['host:5000/a/b', 'host:5000/a/b:latest'],
  ['ghcr.io/a/b:2@sha256:00', 'ghcr.io/a/b@sha256:00'],
] as const;
for (const [short, full] of references)
  test(`${short} is ${full} in full`, () => {
    assert.equal(fullImageReference(short), full);
  });

test('an archive is found by the tags it carries, whatever its file name, and broken files are passed over', async () => {
  const dir = await mkdtemp(path.join(tmpdir(), 'slipway-archives-'));
  try {
    const docker = [{ Config: 'c.json', RepoTags: ['debian:bookworm-slim'], Layers: [] }];
    const oci = {
      manifests: [{ annotations: { 'org.opencontainers.image.ref.name': 'docker.io/a/b:1' } }],
    };
    await writeFile(path.join(dir, 'a.tar'), 'no archive');
    await writeFile(
      path.join(dir, 'b.tar'),
      await archive([{ name: 'manifest.json', content: JSON.stringify(docker) }]),
    );
    await writeFile(
      path.join(dir, 'c.tar'),
      await archive([{ name: 'index.json', content: JSON.stringify(oci) }]),
    );
    const archives = new ImageArchives(dir);
    assert.equal(
      await archives.find('docker.io/library/debian:bookworm-slim'),
      path.join(dir, 'b.tar'),
    );
    assert.equal(await archives.find('a/b:1'), path.join(dir, 'c.tar'));
    assert.equal(await archives.find('debian:trixie'), null);
    await assert.rejects(tagsOfArchive(path.join(dir, 'a.tar')));
  } finally {
    await rm(dir, { recursive: true });
  }
});

test('a folder that does not exist holds no archives', async () => {
  assert.equal(await new ImageArchives('/nonexistent/folder').find('a'), null);
  assert.equal(await new ImageArchives(null).find('a'), null);
});

test('the index reads long names and follows links between members', async () => {
  const dir = await mkdtemp(path.join(tmpdir(), 'slipway-tar-'));
  try {
    const long = `${'d/'.repeat(90)}layer.tar`;
    const file = path.join(dir, 'x.tar');
    await writeFile(
      file,
      await archive([
        { name: long, content: 'bytes' },
        { name: 'b/layer.tar', linkname: `../${long}` },
      ]),
    );
    const index = await TarIndex.read(file);
    const member = index.member('b/layer.tar');
    assert.ok(member);
    assert.equal((await buffer(index.stream(member))).toString(), 'bytes');
    assert.equal(index.member('none'), null);
  } finally {
    await rm(dir, { recursive: true });
  }
});
