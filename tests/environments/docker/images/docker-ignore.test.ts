import assert from 'node:assert/strict';
import { test } from 'node:test';
import { DockerIgnore } from '../../../../src/environments/docker/images/docker-ignore.ts';

const table = [
  ['a name is anchored at the root', 'foo', { foo: true, 'foo/x': true, 'a/foo': false }],
  ['a leading slash changes nothing', '/foo', { foo: true, 'a/foo': false }],
  ['a star stays in its folder', '*.log', { 'a.log': true, 'a/b.log': false, '.x.log': true }],
  ['two stars cross folders', '**/*.log', { 'a.log': true, 'a/b/c.log': true, 'a.txt': false }],
  ['the last match wins', '*.md\n!README.md', { 'a.md': true, 'README.md': false }],
  ['a later rule takes back', '!a.md\n*.md', { 'a.md': true }],
  ['a file returns from a folder left out', 'dir\n!dir/keep', { 'dir/x': true, 'dir/keep': false }],
  ['comments and blank lines say nothing', '# foo\n\n  bar  ', { foo: false, bar: true }],
  ['braces are literal', '{a,b}', { a: false, '{a,b}': true }],
  ['a question mark is one character', 'f?o', { foo: true, fo: false, 'f/o': false }],
] as const;

for (const [title, text, paths] of table)
  test(`.dockerignore: ${title}`, () => {
    const ignore = new DockerIgnore(text);
    const seen = Object.fromEntries(
      Object.keys(paths).map((path) => [path, ignore.leavesOut(path)]),
    );
    assert.deepEqual(seen, paths);
  });
