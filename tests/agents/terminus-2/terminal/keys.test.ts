import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { controlLine } from '../../../../src/agents/terminus-2/terminal/control-quote.ts';
import { hasControlMode } from '../../../../src/agents/terminus-2/terminal/tmux-version.ts';
import { maxKeysBytes, typingOf } from '../../../../src/agents/terminus-2/terminal/type-keys.ts';

describe('a line of control mode', () => {
  const rows: readonly [string, string][] = [
    ['plain words', '"plain words"'],
    ['$HOME "x" \\', '"\\$HOME \\"x\\" \\\\"'],
    ["it's; #{x} %if -x", '"it\'s; #{x} %if -x"'],
    ['~/x ~', '"\\~/x \\~"'],
    ['a\nb\r\tc', '"a\\nb\\r\\tc"'],
    ['\u0001\u001b\u007f', '"\\001\\033\\177"'],
    ['žluť 🐧\u0085', '"žluť 🐧\u0085"'],
    ['', '""'],
  ];
  for (const [word, quoted] of rows)
    test(`quotes ${JSON.stringify(word)}`, () => {
      assert.equal(controlLine(['send-keys', word]), `"send-keys" ${quoted}\n`);
    });
});

test('several commands make one line of control mode', () => {
  assert.equal(controlLine(['a', ';'], ['b']), '"a" ";" ; "b"\n');
});

describe('typing', () => {
  const words = (keys: string): readonly string[] | string => {
    const typing = typingOf(keys);
    return typing.kind === 'keys' ? typing.command.slice(4) : typing.kind;
  };

  test('nothing is typed for an empty string', () => {
    assert.equal(words(''), 'nothing');
  });

  test('keys are one word, whatever is in them', () => {
    for (const keys of ['C-c', 'Enter', ' ', '-l', 'a b\n', ';', '\\;'])
      assert.deepEqual(words(keys), [keys]);
  });

  test('a NUL is the key that makes one', () => {
    assert.deepEqual(words('\0'), ['C-Space']);
    assert.deepEqual(words('a\0\0b'), ['a', 'C-Space', 'C-Space', 'b']);
  });

  test('what is longer than a command may be goes through a buffer', () => {
    const typing = typingOf('');
    assert.equal(typing.kind, 'nothing');
    const prefix = 'send-keys -t =terminus-2: -- ""'.length;
    const longest = 'ž'.repeat(Math.floor((maxKeysBytes - prefix) / 2));
    assert.deepEqual(words(longest), [longest]);
    assert.equal(words(`${longest}žž`), 'paste');
  });
});

describe('control mode', () => {
  for (const [said, expected] of [
    ['tmux 3.3a', true],
    ['tmux 3.2', true],
    ['tmux next-3.5', true],
    ['tmux master', true],
    ['tmux 10.0', true],
    ['tmux 3.1c', false],
    ['tmux 2.8', false],
    ['tmux openbsd-6.6', true],
    ['', false],
  ] as const)
    test(`is ${expected ? '' : 'not '}used with "${said}"`, () => {
      assert.equal(hasControlMode(said), expected);
    });
});
