import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, test } from 'node:test';
import type { StoredImage } from '../../../../src/environments/local/images/image-store.ts';
import { convertWhiteouts } from '../../../../src/environments/local/images/whiteouts.ts';
import { mergeLayers } from '../../../../src/environments/local/runtime/merged-root.ts';

const { signal } = new AbortController();
const dir = mkdtempSync(path.join(tmpdir(), 'slipway-merge-'));
after(() => rmSync(dir, { recursive: true, force: true }));

/** Files by path; null = a folder, `->` = a link. */
type Tree = Readonly<Record<string, string | null>>;

async function merged(name: string, ...layers: readonly Tree[]): Promise<string> {
  const layersDir = path.join(dir, name);
  for (const [at, tree] of layers.entries()) {
    const layer = path.join(layersDir, String(at));
    mkdirSync(layer, { recursive: true });
    for (const [file, content] of Object.entries(tree)) {
      const target = path.join(layer, file);
      mkdirSync(content === null ? target : path.dirname(target), { recursive: true });
      if (content?.startsWith('->') === true) symlinkSync(content.slice(2), target);
      else if (content !== null) writeFileSync(target, content);
    }
    await convertWhiteouts(layer, signal);
  }
  const image: StoredImage = {
    id: name,
    config: { env: [], entrypoint: [], user: '', workdir: '/', diffIds: [], architecture: '' },
    layersDir,
    layers: layers.map((_, at) => String(at)).reverse(),
  };
  const root = path.join(dir, `${name}-root`);
  mkdirSync(root);
  await mergeLayers(image, root, signal);
  return root;
}

const listed = (root: string): string[] =>
  execFileSync('find', ['.', '-mindepth', '1', '-printf', '%y %P\n'], {
    cwd: root,
    encoding: 'utf8',
  })
    .split('\n')
    .filter(Boolean)
    .sort();

test('a higher layer adds and replaces, and the layers stay as they are', async () => {
  const root = await merged('adds', { 'a/one': '1', 'a/two': '2' }, { 'a/two': 'new', 'b/x': 'x' });
  assert.deepEqual(listed(root), ['d a', 'd b', 'f a/one', 'f a/two', 'f b/x']);
  assert.equal(readFileSync(path.join(root, 'a/two'), 'utf8'), 'new');
  writeFileSync(path.join(root, 'a/one'), 'changed');
  assert.equal(readFileSync(path.join(dir, 'adds/0/a/one'), 'utf8'), '1');
});

test('removals of files and folders are carried out and leave no mark', async () => {
  const root = await merged(
    'removes',
    { 'a/one': '1', 'a/two': '2', 'deep/in/it': 'x' },
    { 'a/.wh.one': '', '.wh.deep': '' },
  );
  assert.deepEqual(listed(root), ['d a', 'f a/two']);
});

test('an opaque folder hides all that lies below it, and nothing of its own', async () => {
  const root = await merged(
    'opaque',
    { 'a/old': '1', 'a/sub/x': '1' },
    { 'a/.wh..wh..opq': '', 'a/new': '2' },
  );
  assert.deepEqual(listed(root), ['d a', 'f a/new']);
});

test('files, folders and links take each other’s place; links are not written through', async () => {
  const outside = path.join(dir, 'outside');
  mkdirSync(outside);
  const root = await merged(
    'kinds',
    {
      'file-to-dir': 'x',
      'dir-to-file/in': 'x',
      'link-to-dir': `->${outside}`,
      'link-to-file': `->${outside}/f`,
    },
    { 'file-to-dir/in': 'y', 'dir-to-file': 'y', 'link-to-dir/in': 'y', 'link-to-file': 'y' },
  );
  assert.deepEqual(listed(root), [
    ...['d file-to-dir', 'd link-to-dir', 'f dir-to-file', 'f file-to-dir/in', 'f link-to-dir/in'],
    'f link-to-file',
  ]);
  assert.deepEqual(readdirSync(outside), []);
});
