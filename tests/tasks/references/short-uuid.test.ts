import assert from 'node:assert/strict';
import { test } from 'node:test';
import { shortUuid } from '../../../src/tasks/references/short-uuid.ts';
import { gitTaskId } from '../../../src/tasks/references/task-id.ts';

// Expected values come from Python's uuid module and the encoding of the shortuuid package.
const names: readonly (readonly [string, string])[] = [
  ['', 'G2XvSSebd6Tc4bHMenwxLy'],
  ['example.org', 'YQKLygYX3Rz6wMroC4C7iU'],
  ['https://example.org/a', 'PHsC9E85LA8kfLKALmZmPx'],
  ['zähler', 'dZpx7khLCKSBdfQfrBSnot'],
  ['n30', '2opsBgTcUssHTwmspxDEJC'],
];

await test('short ids equal those of Python for domain names, addresses, other letters and leading zeros', () => {
  for (const [name, expected] of names) assert.equal(shortUuid(name), expected);
});

await test('the id of a git task is rendered as Harbor renders it, so that caches agree', () => {
  const id = gitTaskId({
    url: 'https://github.com/o/r.git',
    commit: '0123456789012345678901234567890123456789',
    path: 'tasks/hello',
  });
  assert.equal(
    id,
    "git_url='https://github.com/o/r.git' git_commit_id='0123456789012345678901234567890123456789' path=PosixPath('tasks/hello')",
  );
  assert.equal(shortUuid(id), 'Z53fAFqLn2beW7K9RoB9At');
});

await test('strings inside an id are quoted as Python quotes them', () => {
  const rendered = (path: string): string =>
    gitTaskId({ url: 'u', commit: null, path }).replace("git_url='u' git_commit_id=None path=", '');
  assert.equal(rendered("it's"), `PosixPath("it's")`);
  assert.equal(rendered(`both ' and "`), `PosixPath('both \\' and "')`);
  assert.equal(rendered('tab\there\\'), `PosixPath('tab\\there\\\\')`);
  assert.equal(rendered('bell\u0007'), `PosixPath('bell\\x07')`);
});

await test('equal ids share a folder, another commit or repository has another', () => {
  const base = { url: 'https://example.org/r', commit: 'a'.repeat(40), path: 't' };
  const folder = (id: typeof base): string => shortUuid(gitTaskId(id));
  assert.equal(folder(base), folder({ ...base }));
  assert.notEqual(folder(base), folder({ ...base, commit: 'b'.repeat(40) }));
  assert.notEqual(folder(base), folder({ ...base, url: 'https://example.org/s' }));
});
