import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { SecretMask } from '../../src/telemetry/secret-mask.ts';

describe('a secret mask', () => {
  const rows: readonly (readonly [
    title: string,
    secrets: string[],
    text: string,
    shown: string,
  ])[] = [
    ['nothing where nothing is known', [], 'key abcdef', 'key abcdef'],
    ['a secret wherever it stands', ['abcdef'], 'abcdef xabcdefx abcdef', '* x*x *'],
    ['several at once', ['abcdef', 'ghijkl'], 'ghijkl,abcdef', '*,*'],
    ['the longest of those that fit', ['abcdef', 'abcdefgh'], 'abcdefgh abcdefg', '* *g'],
    ['as JSON spells it', ['a"b\\c\n'], JSON.stringify({ key: 'a"b\\c\n' }), '{"key":"*"}'],
    ['as an address spells it', ['a b/c+d'], 'x?key=a%20b%2Fc%2Bd&y', 'x?key=*&y'],
    ['beyond ASCII', ['клюъ-1'], 'key клюъ-1.', 'key *.'],
    ['no text that is shorter than any secret', ['abcdef'], 'abc', 'abc'],
    ['no secret of three characters', ['abc'], 'abcabc', 'abcabc'],
  ];
  for (const [title, secrets, text, shown] of rows)
    it(`masks ${title}`, () => {
      const mask = new SecretMask();
      mask.add(secrets);
      assert.equal(mask.mask(text), shown.replaceAll('*', '[REDACTED]'));
    });

  it('forgets a secret when everybody who named it is done', () => {
    const mask = new SecretMask();
    const first = mask.add(['abcdef']);
    const second = mask.add(['abcdef', 'abcdxx']);
    first();
    first();
    assert.equal(mask.mask('abcdef'), '[REDACTED]');
    second();
    assert.equal(mask.mask('abcdef abcdxx'), 'abcdef abcdxx');
  });

  it('finds each of thousands that begin alike', () => {
    const mask = new SecretMask();
    const secrets = Array.from({ length: 4_000 }, (_, index) => `sk-key-${index}-end`);
    mask.add(secrets);
    const text = `x ${secrets[17]} y ${secrets[3_999]} z sk-key-4000-end`;
    assert.equal(mask.mask(text), 'x [REDACTED] y [REDACTED] z sk-key-4000-end');
  });
});
