import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RolloutError } from '../../../src/core/errors.ts';
import { parseGitUrl, publicGitUrl } from '../../../src/tasks/references/git-url.ts';
import { parsePackageReference } from '../../../src/tasks/references/package-reference.ts';
import { parseRepositorySource } from '../../../src/tasks/references/repository-source.ts';
import { readTaskReference } from '../../../src/tasks/references/task-reference.ts';
import { taskEntry } from './workbench.ts';

function codeOf(work: () => unknown): string {
  try {
    work();
  } catch (error) {
    if (error instanceof RolloutError) return error.code;
    throw error;
  }
  return 'accepted';
}

const digest = `sha256:${'ab'.repeat(32)}`;

await test('a package reference is split at its last @ and its ref has a kind', () => {
  const table: readonly (readonly [string, string, string, string])[] = [
    ['acme/hello', 'hello', 'tag', 'latest'],
    ['acme/hello@v1.2', 'hello', 'tag', 'v1.2'],
    ['acme/hello@12', 'hello', 'revision', '12'],
    [`acme/hello@${digest}`, 'hello', 'digest', digest],
    ['Acme.x/he_l-lo.2@latest', 'he_l-lo.2', 'tag', 'latest'],
  ];
  for (const [text, name, kind, ref] of table) {
    const reference = parsePackageReference(text);
    assert.deepEqual([reference.name, reference.ref.kind, reference.ref.text], [name, kind, ref]);
  }
});

await test('what is no package reference is refused', () => {
  const bad = [
    'hello',
    'a/b/c',
    '../b',
    'a/..',
    'a/b..c',
    '-a/b',
    'a/b@',
    'a/b@x y',
    'a/b@sha256:12',
    '/b',
    'a/',
    'a b/c',
  ];
  for (const text of bad)
    assert.equal(
      codeOf(() => parsePackageReference(text)),
      'REFERENCE_INVALID',
      text,
    );
});

await test('git addresses of the known transports are taken', () => {
  const table: readonly (readonly [string, string, string, string])[] = [
    ['https://github.com/o/r.git', 'https', 'github.com', 'r'],
    ['http://127.0.0.1:8080/r', 'http', '127.0.0.1:8080', 'r'],
    ['ssh://git@example.org:2222/o/r.git', 'ssh', 'example.org:2222', 'r'],
    ['git@example.org:o/r.git', 'ssh', 'example.org', 'r'],
    ['git://example.org/r', 'git', 'example.org', 'r'],
    ['file:///srv/r.git', 'file', 'this machine', 'r'],
    ['/srv/r', 'file', 'this machine', 'r'],
  ];
  for (const [text, transport, place, name] of table) {
    const remote = parseGitUrl(text, 'git_url');
    assert.deepEqual(
      [remote.transport, remote.place, remote.repositoryName],
      [transport, place, name],
    );
  }
});

await test('addresses that would be options, run programs or use other transports are refused', () => {
  const bad = [
    '--upload-pack=touch /tmp/x',
    '-x',
    'ext::sh -c touch% /tmp/x',
    'ftp://example.org/r',
    'ssh://-oProxyCommand=x/r',
    '-oProxyCommand=x:r',
    'https://',
    'https://example.org/a\nb',
    'https://user%zz:x@example.org/r',
    '',
  ];
  for (const text of bad)
    assert.equal(
      codeOf(() => parseGitUrl(text, 'git_url')),
      'REFERENCE_INVALID',
      text,
    );
});

await test('user names, passwords and queries never stay in an address that is shown', () => {
  const remote = parseGitUrl('https://me:s3cret%21@example.org/o/r.git?token=abc#x', 'git_url');
  assert.deepEqual(remote.credentials, {
    origin: 'https://example.org',
    username: 'me',
    password: 's3cret!',
  });
  assert.doesNotMatch(remote.url, /me|s3cret/);
  assert.equal(publicGitUrl(remote), 'https://example.org/o/r.git');
  for (const clean of [
    'git@example.org:o/r.git',
    'ssh://git@example.org/r',
    'https://Example.org',
    '/srv/r',
  ])
    assert.equal(publicGitUrl(parseGitUrl(clean, 'git_url')), clean);
  assert.equal(publicGitUrl(parseGitUrl('ssh://git:pw@h/r', 'git_url')), 'ssh://git@h/r');
});

await test('paths in a repository stay inside it and refs are names', () => {
  const git = (path: string, git_commit_id?: string) =>
    readTaskReference(
      taskEntry({ git_url: 'https://example.org/r', path, git_commit_id }),
      '/base',
    );
  assert.equal(git('./a//b/').name, 'b');
  for (const path of ['../a', '/a', 'a/../..', 'a\nb'])
    assert.equal(
      codeOf(() => git(path)),
      'REFERENCE_INVALID',
      path,
    );
  for (const ref of ['-x', 'a..b', 'a b', 'a:b', 'a^', '', '@{1}~', 'a*'])
    assert.equal(
      codeOf(() => git('a', ref)),
      'REFERENCE_INVALID',
      ref,
    );
  const upper = git('a', 'ABCDEF0123456789ABCDEF0123456789ABCDEF01');
  assert.ok(upper.kind === 'git' && upper.commit === 'abcdef0123456789abcdef0123456789abcdef01');
});

await test('a repository is named in every way that people write it', () => {
  const sha = 'c'.repeat(40);
  const table: readonly (readonly [string, string, string, string | null, string | null])[] = [
    ['o/r', 'https://github.com/o/r', 'github.com/o/r', null, null],
    ['o/r@v1', 'https://github.com/o/r', 'github.com/o/r', 'v1', null],
    ['o/r@feature/x', 'https://github.com/o/r', 'github.com/o/r', 'feature/x', null],
    ['git.example.org/o/r', 'https://git.example.org/o/r', 'git.example.org/o/r', null, null],
    [
      'https://github.com/o/r.git@main',
      'https://github.com/o/r.git',
      'github.com/o/r',
      'main',
      null,
    ],
    [
      'https://github.com/o/r/tree/dev/a/b',
      'https://github.com/o/r',
      'github.com/o/r',
      'dev',
      'a/b',
    ],
    [`https://github.com/o/r/tree/${sha}`, 'https://github.com/o/r', 'github.com/o/r', sha, null],
    [
      'https://huggingface.co/datasets/o/r',
      'https://huggingface.co/datasets/o/r',
      'huggingface.co/datasets/o/r',
      null,
      null,
    ],
    ['git@example.org:o/r.git@v2', 'git@example.org:o/r.git', 'example.org/o/r', 'v2', null],
    [
      'ssh://git@example.org/o/r.git',
      'ssh://git@example.org/o/r.git',
      'example.org/o/r',
      null,
      null,
    ],
    ['git://127.0.0.1:9418/o/r', 'git://127.0.0.1:9418/o/r', '127.0.0.1_9418/o/r', null, null],
  ];
  for (const [text, url, label, ref, subdir] of table) {
    const source = parseRepositorySource(text, 'repo');
    assert.deepEqual(
      [source.remote.url, source.label, source.ref, source.subdir],
      [url, label, ref, subdir],
      text,
    );
  }
});

await test('folders of this machine, two refs at once and odd names are no repository', () => {
  const bad = [
    './r',
    '/srv/r',
    '~/r',
    '../r',
    'file:///srv/r',
    'r',
    '-x/y',
    'https://github.com/o/r/tree/dev/a@main',
    'o/r@',
    'o/r@-x',
    'a/b/c',
    'https://h.example/o/%2e%2e%2fr',
  ];
  for (const text of bad)
    assert.equal(
      codeOf(() => parseRepositorySource(text, 'repo')),
      'REFERENCE_INVALID',
      text,
    );
});
