/** The small parts of the engine's server, each for itself. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { isRolloutError } from '../../../src/core/errors.ts';
import { exactNumber } from '../../../src/engines/server/exact-number.ts';
import {
  compileFaults,
  faultChooser,
  readFaults,
} from '../../../src/engines/server/fault-script.ts';
import { KvAccount } from '../../../src/engines/server/kv-account.ts';
import { noLatency, parseLatency, sampleLatency } from '../../../src/engines/server/latency.ts';
import { ReplySplitter } from '../../../src/engines/server/reply-splitter.ts';
import { PrefixHash, SeenCounter, seededRandom } from '../../../src/engines/server/seeded.ts';
import { OutputText } from '../../../src/engines/server/stop-rule.ts';
import type { Vocabulary } from '../../../src/engines/server/token-model.ts';
import { vocabularyOfTests } from './serving.ts';

describe('seeded numbers', () => {
  it('repeat for the same parts and differ for others', () => {
    const draw = (...parts: number[]): number[] => {
      const random = seededRandom(...parts);
      return Array.from({ length: 20 }, random);
    };
    assert.deepEqual(draw(1, 2), draw(1, 2));
    assert.notDeepEqual(draw(1, 2), draw(2, 1));
    assert.ok(draw(3).every((value) => value >= 0 && value < 1));
  });

  it('are spread evenly', () => {
    const random = seededRandom(5);
    const counts = new Array<number>(10).fill(0);
    for (let index = 0; index < 20_000; index += 1) counts[Math.floor(random() * 10)]! += 1;
    for (const count of counts) assert.ok(Math.abs(count - 2000) < 250, String(count));
  });

  it('hashes of prefixes depend on order and length', () => {
    const keys = [[], [0], [0, 0], [1, 2], [2, 1], [1, 2, 0]].map((ids) => PrefixHash.of(ids).key);
    assert.equal(new Set(keys).size, keys.length);
    assert.ok(keys.every(Number.isSafeInteger));
  });

  it('a counter counts per key and forgets the oldest beyond its bound', () => {
    const seen = new SeenCounter(2);
    assert.deepEqual(
      [1, 1, 2, 3, 1].map((key) => seen.next(key)),
      [0, 1, 0, 0, 0],
    );
  });
});

describe('latency laws', () => {
  const random = seededRandom(1);
  it('constant is constant, none is nothing', () => {
    assert.equal(sampleLatency(parseLatency('constant:250', '--latency'), random), 250);
    assert.equal(sampleLatency(noLatency, random), 0);
    assert.deepEqual(parseLatency('constant:0', '--latency'), noLatency);
  });

  it('pareto begins at its scale, has its median, and ends at its cap', () => {
    const law = parseLatency('pareto:100,1.5,5000', '--latency');
    const drawn = Array.from({ length: 20_001 }, () => sampleLatency(law, random)).sort(
      (a, b) => a - b,
    );
    assert.ok(drawn[0]! >= 100);
    assert.equal(drawn.at(-1), 5000);
    assert.ok(Math.abs(drawn[10_000]! - 100 * 2 ** (1 / 1.5)) < 5, String(drawn[10_000]));
  });

  for (const text of [
    '',
    'constant',
    'constant:',
    'constant:-1',
    'constant:1,2',
    'pareto:1',
    'pareto:0,1',
    'pareto:5,1,4',
    'normal:1',
    'pareto:1,2,3,4',
    'constant:Infinity',
  ])
    // prettier-ignore
    it(`refuses ${JSON.stringify(text)} and names the flag`, () => {
      assert.throws(
        () => parseLatency(text, '--latency'),
        (error) => isRolloutError(error, 'CONFIG_INVALID') && error.field === '--latency',
      );
    });
});

describe('the KV account', () => {
  const ids = (count: number, from = 0): number[] =>
    Array.from({ length: count }, (_, index) => from + index);

  it('reuses whole blocks of a prefix, and never the last token', () => {
    const kv = new KvAccount(1000);
    kv.keep(ids(40));
    assert.equal(kv.cachedTokens, 32);
    assert.equal(kv.reuse(ids(100)), 32);
    assert.equal(kv.reuse(ids(32)), 31);
    assert.equal(kv.reuse(ids(15)), 0);
    assert.equal(kv.reuse(ids(100, 1)), 0);
  });

  it('gives up the oldest blocks when running requests need the room', () => {
    const kv = new KvAccount(64);
    kv.keep(ids(32));
    kv.keep(ids(32, 1000));
    kv.hold(32);
    assert.equal(kv.reuse(ids(33)), 0);
    assert.equal(kv.reuse(ids(33, 1000)), 32);
    assert.equal(kv.freeTokens, 32);
    kv.forget();
    assert.equal(kv.cachedTokens, 0);
    kv.release(32);
    assert.equal(kv.heldTokens, 0);
  });
});

describe('the text of a reply', () => {
  it('holds back what may become a stop string, and cuts at it', async () => {
    const vocabulary = await vocabularyOfTests();
    const output = new OutputText(vocabulary, { stop: ['STOP', 'ST!'] });
    const shown: string[] = [];
    let isOver = false;
    for (const character of 'aSaSTbSTOPc') {
      const [id = 0] = vocabulary.encode(character, { parsesSpecial: false });
      isOver = output.push(id);
      shown.push(output.text.slice(0, output.shownLength));
      if (isOver) break;
    }
    assert.deepEqual(shown, ['a', 'a', 'aSa', 'aSa', 'aSa', 'aSaSTb', 'aSaSTb', 'aSaSTb', 'aSaSTb', 'aSaSTb']); // prettier-ignore
    assert.equal(output.match, 'STOP');
    assert.equal(output.text, 'aSaSTbSTOP');
  });

  it('finds the stop string that begins first wherever the ids cut it, and shows all before it', () => {
    const pieces = ['a', 'b', 'c', 'ab', 'ba', 'aab', 'bab', 'aaaa', 'é'];
    const random = seededRandom(5);
    const oneOf = <T>(list: readonly T[]): T => list[Math.floor(random() * list.length)]!;
    const word = (): string =>
      Array.from({ length: 1 + Math.floor(random() * 4) }, () => oneOf(['a', 'b', 'c'])).join('');
    const letters: Vocabulary = {
      size: pieces.length,
      endId: -1,
      encode: () => [],
      bytesOf: (id) => Buffer.from(pieces[id]!),
      isSpecial: () => false,
      isEnd: () => false,
      decode: () => '',
    };
    for (let round = 0; round < 2000; round += 1) {
      const stop = Array.from({ length: 1 + Math.floor(random() * 3) }, word);
      const output = new OutputText(letters, { stop });
      let text = '';
      for (let isStopped = false; !isStopped && text.length < 30;) {
        const piece = oneOf(pieces);
        text += piece;
        isStopped = output.push(pieces.indexOf(piece));
        const found = stop.map((each) => text.indexOf(each)).filter((at) => at !== -1);
        assert.equal(isStopped, found.length > 0);
        const held = Array.from({ length: text.length }, (_, at) => text.slice(at)).findIndex(
          (end) => stop.some((each) => each.startsWith(end)),
        );
        assert.equal(output.text, text);
        assert.equal(
          output.shownLength,
          isStopped ? Math.min(...found) : held === -1 ? text.length : held,
        );
      }
    }
  });

  it('shows a beginning of a stop string that came to nothing once no more follows', async () => {
    const vocabulary = await vocabularyOfTests();
    const output = new OutputText(vocabulary, { stop: ['STOP'] });
    for (const id of vocabulary.encode('do ST', { parsesSpecial: false })) output.push(id);
    assert.equal(output.text.slice(0, output.shownLength), 'do ');
    output.end();
    assert.equal(output.text.slice(0, output.shownLength), 'do ST');
  });

  it('ends at the end token and at stop ids, which are no text', async () => {
    const vocabulary = await vocabularyOfTests();
    const [stopId = 0] = vocabulary.encode('!', { parsesSpecial: false });
    for (const id of [vocabulary.endId, stopId]) {
      const output = new OutputText(vocabulary, { stopTokenIds: [stopId] });
      assert.equal(output.push(id), true);
      assert.equal(output.match, id);
      assert.equal(output.text, '');
    }
  });

  it('holds back bytes that are no whole character, and keeps a byte order mark', async () => {
    const vocabulary = await vocabularyOfTests();
    const output = new OutputText(vocabulary, {});
    const bytes = [...Buffer.from('\ufeff👍')];
    const lengths: number[] = [];
    for (const byte of bytes) {
      output.push(idOfByte(vocabulary.bytesOf.bind(vocabulary), vocabulary.size, byte));
      lengths.push(output.text.length);
    }
    assert.deepEqual(lengths, [0, 0, 1, 1, 1, 1, 3]);
    assert.equal(output.text, '\ufeff👍');
  });
});

function idOfByte(bytesOf: (id: number) => Uint8Array, size: number, byte: number): number {
  for (let id = 0; id < size; id += 1) {
    const bytes = bytesOf(id);
    if (bytes.length === 1 && bytes[0] === byte) return id;
  }
  throw new Error(`no id is the byte ${byte}`);
}

describe('splitting a reply', () => {
  const call = '<tool_call>\n{"name": "run", "arguments": {"a": 1.0, "b": "x"}}\n</tool_call>';
  const rows: readonly [title: string, text: string, expected: readonly string[]][] = [
    ['plain text', 'hello', ['content:hello']],
    ['reasoning first', '<think>why\n</think>\n\nso', ['reasoning:why\n', 'content:\n\nso']],
    ['think tags later are text', 'a<think>b</think>', ['content:a<think>b</think>']],
    ['reasoning that does not end', '<think>why </thi', ['reasoning:why </thi']],
    ['a call keeps its arguments as sampled', call, ['run({"a": 1.0, "b": "x"})']],
    ['text, then two calls', `go${call}\n${call}\n`, ['content:go', 'run({"a": 1.0, "b": "x"})', 'run({"a": 1.0, "b": "x"})']], // prettier-ignore
    ['text behind a call', `${call} end`, ['run({"a": 1.0, "b": "x"})', 'content: end']],
    ['a call that is no JSON stays text', '<tool_call>{oops</tool_call>!', ['content:<tool_call>{oops</tool_call>!']], // prettier-ignore
    ['a call that is cut off stays text', 'x<tool_call>{"name":', ['content:x<tool_call>{"name":']],
    ['a tag that was none', 'a <tool_ b <', ['content:a <tool_ b <']],
    ['a call without arguments', '<tool_call>{"name":"f"}</tool_call>', ['f({})']],
    ['reasoning and a call', `<think>r</think>${call}`, ['reasoning:r', 'run({"a": 1.0, "b": "x"})']], // prettier-ignore
    ['nothing', '', []],
  ];
  const read = (chunks: readonly string[]): string[] => {
    const splitter = new ReplySplitter({ splitsReasoning: true, splitsTools: true });
    const parts = [...chunks.flatMap((chunk) => splitter.push(chunk)), ...splitter.end()];
    const merged: string[] = [];
    let last = '';
    for (const part of parts) {
      if (part.type === 'tool') merged.push(`${part.name}(${part.arguments})`);
      else if (last === part.type) merged.push(`${merged.pop() ?? ''}${part.text}`);
      else merged.push(`${part.type}:${part.text}`);
      last = part.type;
    }
    return merged;
  };
  for (const [title, text, expected] of rows)
    it(`${title}, whole and character by character`, () => {
      assert.deepEqual(read([text]), expected);
      assert.deepEqual(read(Array.from(text)), expected);
    });

  it('splits nothing that was not asked for', () => {
    const splitter = new ReplySplitter({ splitsReasoning: false, splitsTools: false });
    const text = `<think>r</think>${call}`;
    const parts = [...splitter.push(text), ...splitter.end()];
    assert.deepEqual(parts, [{ type: 'content', text }]);
  });
});

describe('fault scripts', () => {
  const subject = (
    prompt: string,
    route = '/generate',
  ): Parameters<ReturnType<typeof faultChooser>>[0] => ({
    route,
    promptIds: Array.from(prompt).map((character) => character.charCodeAt(0)),
    promptText: () => prompt,
  });

  it('nth and every count only the requests that pass the other conditions', () => {
    const choose = faultChooser(
      compileFaults([
        { match: { nth: 2, route: '/generate' }, fault: 'status-500' },
        { match: { every: 3, promptContains: 'x' }, fault: 'overload', status: 429 },
      ]),
      0,
    );
    const faults = ['a', 'x', 'x', 'b', 'x', 'x', 'x', 'x'].map(
      (prompt, index) =>
        choose(subject(prompt, index === 0 ? '/v1/chat/completions' : '/generate'))?.fault ?? '-',
    );
    assert.deepEqual(faults, ['-', '-', 'status-500', '-', 'overload', '-', '-', 'overload']);
  });

  it('a share is drawn from seed and prompt, in whatever order requests come', () => {
    const rules = compileFaults([{ match: { share: 0.3 }, fault: 'reset' }]);
    const prompts = Array.from({ length: 400 }, (_, index) => `prompt ${index}`);
    const struck = (order: readonly string[], seed: number): Set<string> => {
      const choose = faultChooser(rules, seed);
      return new Set(order.filter((prompt) => choose(subject(prompt)) !== null));
    };
    assert.deepEqual(struck(prompts, 1), struck([...prompts].reverse(), 1));
    assert.notDeepEqual(struck(prompts, 1), struck(prompts, 2));
    assert.ok(Math.abs(struck(prompts, 1).size - 120) < 40);
  });

  it('a script may stand in the command line, as JSON or YAML', async () => {
    const expected = [{ match: { nth: 1 }, fault: 'stall', afterTokens: 3, ms: 'forever' }];
    assert.deepEqual(
      await readFaults('[{"match": {"nth": 1}, "fault": "stall", "afterTokens": 3}]'),
      expected,
    );
    assert.deepEqual(
      await readFaults('- match: {nth: 1}\n  fault: stall\n  afterTokens: 3'),
      expected,
    );
  });

  for (const [title, source] of [
    ['an unknown fault', '[{"match": {}, "fault": "explode"}]'],
    ['an unknown condition', '[{"match": {"when": 1}, "fault": "reset"}]'],
    ['a share above 1', '[{"match": {"share": 2}, "fault": "reset"}]'],
    ['a file that is not there', '/nowhere/faults.yaml'],
  ] as const)
    it(`refuses ${title}`, async () => {
      await assert.rejects(readFaults(source), (error) => isRolloutError(error, 'CONFIG_INVALID'));
    });
});

describe('numbers in answers', () => {
  for (const value of [-0, 0, -1e-7, Math.fround(-18.3), -1.1754943508222875e-38, -0.1])
    it(`${Object.is(value, -0) ? '-0' : value} arrives as it was`, () => {
      const read = JSON.parse(JSON.stringify([exactNumber(value)])) as number[];
      assert.ok(Object.is(read[0], value));
    });
});
