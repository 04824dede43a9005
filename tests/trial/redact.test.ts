import assert from 'node:assert/strict';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { redactDocument, redactFolder } from '../../src/trial/redact.ts';

const secret = 'sk-caf\u00e9-0123456789';
const mebibyte = 1024 * 1024;

describe('what a trial leaves is rid of secrets', () => {
  let dir = '';
  before(async () => {
    dir = await mkdtemp(path.join(os.tmpdir(), 'redact-'));
  });
  after(() => rm(dir, { recursive: true }));

  const cases: readonly (readonly [string, Buffer, Buffer])[] = [
    ['in plain text', Buffer.from('a'), Buffer.from('b')],
    ['beside bytes that are no UTF-8', Buffer.from([0xe9, 0xff]), Buffer.from([0x80])],
    ['beside NUL bytes', Buffer.from([0, 1]), Buffer.from([0])],
    ['behind more than one read', Buffer.alloc(9 * mebibyte, 'x'), Buffer.from('y')],
    ['across the end of a read', Buffer.alloc(mebibyte - 5, 'x'), Buffer.alloc(mebibyte, 'y')],
  ];
  for (const [title, head, tail] of cases)
    test(title, async () => {
      const file = path.join(dir, 'file');
      await writeFile(file, Buffer.concat([head, Buffer.from(secret), tail]), { mode: 0o640 });
      await redactFolder(dir, [secret]);
      const expected = Buffer.concat([head, Buffer.from('[REDACTED]'), tail]);
      assert.ok((await readFile(file)).equals(expected), 'every other byte stays as it is');
      assert.deepEqual(await readdir(dir), ['file']);
    });

  test('a secret that is the beginning of another leaves no piece of it at the end of a read', async () => {
    const file = path.join(dir, 'file');
    const fill = 'x'.repeat(mebibyte - secret.length - 2);
    await writeFile(file, `${fill}${secret}-and-more y`);
    await redactFolder(dir, [`${secret}-and-more`, secret]);
    assert.equal((await readFile(file, 'utf8')).slice(fill.length), '[REDACTED] y');
  });

  test('in a document, also where a terminal broke the line', () => {
    const text = `a ${secret} ${secret.slice(0, 5)}\n${secret.slice(5)}`;
    assert.deepEqual(redactDocument({ a: [text, 1, null] }, [secret]), {
      a: ['a [REDACTED] [REDACTED]', 1, null],
    });
  });
});
