import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { describe, it } from 'node:test';

const root = path.resolve(import.meta.dirname, '..');

/** Patterns are put together from pieces, so that this file does not hold what it forbids. */
const machinePaths = [
  ['/work', '/'],
  ['/Users', '/[A-Za-z]'],
  ['bash', '_jobs'],
  ['/tmp', '/[a-z]+/brief'],
  ['C:', String.raw`\\Users`],
].map((pieces) => pieces.join(''));

/** Where this clone and its user's files are; the home of root is in every image and tells nothing. */
const ownPaths = [root, ...(os.homedir() === '/root' ? [] : [os.homedir()])].map((dir) =>
  dir.replaceAll('.', String.raw`\.`),
);

const registryHosts = [
  ['deb.debian', '.org'],
  ['security.debian', '.org'],
  ['snapshot.debian', '.org'],
  ['archive.ubuntu', '.com'],
  ['ports.ubuntu', '.com'],
  ['registry.npmjs', '.org'],
  ['registry.yarnpkg', '.com'],
  ['npmmirror', '.com'],
  ['pypi', '.org'],
  ['pythonhosted', '.org'],
  ['crates', '.io'],
  ['proxy.golang', '.org'],
  ['rubygems', '.org'],
  ['artifactregistry', '.'],
  ['-docker.pkg', '.dev'],
  ['-npm.pkg', '.dev'],
].map((pieces) => pieces.join('').replaceAll('.', String.raw`\.`));

/** Lines of tracked files that match, as `file:line:text`. */
function grep(pattern: string): readonly string[] {
  try {
    const argv = ['grep', '-nIE', '-e', pattern, '--', '.', ':!LICENSE'];
    return execFileSync('git', argv, { cwd: root, encoding: 'utf8' }).trimEnd().split('\n');
  } catch (error) {
    // git grep ends with 1 when nothing matches.
    if ((error as { status?: number }).status === 1) return [];
    throw error;
  }
}

describe('the tree', () => {
  it('names no path of anybody’s machine', () => {
    assert.deepEqual(grep([...machinePaths, ...ownPaths].join('|')), []);
  });

  it('names no host of a package registry', () => {
    assert.deepEqual(grep(registryHosts.join('|')), []);
  });

  it('is really searched: what is there is found', () => {
    assert.ok(grep('"license": "Apache').some((line) => line.startsWith('package.json:')));
  });

  it('has a lock file without resolved addresses', () => {
    const lock = JSON.parse(readFileSync(path.join(root, 'package-lock.json'), 'utf8')) as {
      packages: Record<string, { resolved?: string; integrity?: string }>;
    };
    const entries = Object.entries(lock.packages).filter(([name]) => name !== '');
    assert.ok(entries.length > 0);
    assert.deepEqual(
      entries.filter(([, entry]) => entry.resolved !== undefined).map(([name]) => name),
      [],
    );
    assert.deepEqual(
      entries.filter(([, entry]) => entry.integrity === undefined).map(([name]) => name),
      [],
    );
  });
});
