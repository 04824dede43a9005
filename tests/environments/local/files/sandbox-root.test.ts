import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, readlinkSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, test } from 'node:test';
import { SandboxRoot } from '../../../../src/environments/local/files/sandbox-root.ts';

const dir = mkdtempSync(path.join(tmpdir(), 'slipway-root-'));
after(() => rmSync(dir, { recursive: true }));
const inside = path.join(dir, 'inside');
mkdirSync(path.join(inside, 'a/b'), { recursive: true });
mkdirSync(path.join(dir, 'outside'));
writeFileSync(path.join(inside, 'file'), '');
symlinkSync('/a', path.join(inside, 'absolute'));
symlinkSync('../../outside', path.join(inside, 'a/up'));
symlinkSync(path.join(dir, 'outside'), path.join(inside, 'host'));
symlinkSync('loop', path.join(inside, 'loop'));
symlinkSync('../a/./b/..', path.join(inside, 'a/dots'));

function where(to: string, options = {}): string {
  using folder = new SandboxRoot(inside).folder(to, options);
  return readlinkSync(`/proc/self/fd/${folder.fd}`);
}

test('absolute links and dots mean what they mean in the sandbox', () => {
  assert.equal(where('/absolute/b'), path.join(inside, 'a/b'));
  assert.equal(where('/a/dots'), path.join(inside, 'a'));
  assert.equal(where('/../../..'), inside);
  assert.equal(where('//a//b/'), path.join(inside, 'a/b'));
});

test('no path leads above the root: what would be outside is looked for inside', () => {
  assert.throws(() => where('/a/up'), { code: 'ENOENT' });
  assert.throws(() => where('/host'), { code: 'ENOENT' });
});

test('missing folders are made inside, also behind a link that points out', () => {
  assert.equal(where('/host/new', { isCreated: true }), path.join(inside, dir, 'outside/new'));
});

test('a link to itself, a file as a folder and a relative path are refused', () => {
  assert.throws(() => where('/loop'), { code: 'ELOOP' });
  assert.throws(() => where('/file/x'), { code: 'ENOTDIR' });
  assert.throws(() => where('a'), { code: 'TRANSFER_FAILED' });
});
