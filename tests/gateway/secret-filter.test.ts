import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { SecretFilter, secretBytes } from '../../src/gateway/secret-filter.ts';

const secrets = ['sk-secret-1234', 'sk-other'];

function passed(text: string, size: number): string {
  const filter = new SecretFilter(secretBytes(secrets));
  const bytes = Buffer.from(text);
  const shown: Buffer[] = [];
  for (let from = 0; from < bytes.length; from += size)
    shown.push(filter.push(bytes.subarray(from, from + size)));
  return Buffer.concat([...shown, filter.end()]).toString();
}

const rows: readonly (readonly [given: string, shown: string])[] = [
  ['', ''],
  ['nothing of it 🙂', 'nothing of it 🙂'],
  ['a sk-secret-1234 b', 'a ************** b'],
  ['sk-sk-secret-1234sk-othersk-o', 'sk-**********************sk-o'],
  ['sk-secret-123', 'sk-secret-123'],
  ['sk-secret-sk-secret-1234', 'sk-secret-**************'],
];

describe('the filter of secrets', () => {
  for (const [given, shown] of rows)
    it(`makes ${JSON.stringify(shown)} of ${JSON.stringify(given)}, however it is cut`, () => {
      for (let size = 1; size <= given.length + 1; size += 1)
        assert.equal(passed(given, size), shown, `pieces of ${size}`);
    });

  it('lets go at once what can be no secret, and leaves the bytes that it was given', () => {
    const filter = new SecretFilter(secretBytes(secrets));
    const given = Buffer.from('x sk-secret-1234 y sk-s');
    assert.equal(filter.push(given).toString(), 'x ************** y ');
    assert.equal(given.toString(), 'x sk-secret-1234 y sk-s');
    assert.equal(filter.push(Buffer.from('top')).toString(), 'sk-stop');
    const plain = new SecretFilter([]);
    assert.equal(plain.push(given), given);
  });
});
