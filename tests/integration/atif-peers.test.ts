import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { atifText } from '../../src/wire/atif/atif-text.ts';
import { isIsoTimestamp } from '../../src/wire/atif/iso-timestamp.ts';
import { readTrajectory } from '../../src/wire/atif/models.ts';
import { validateTrajectory } from '../../src/trajectory/validate.ts';
import { AtifPeers, validateWithPeers } from '../support/atif-peers.ts';
import { seededRandom } from '../support/random.ts';
import { drop, mutations, set } from './atif-mutations.ts';

const validDir = path.resolve(import.meta.dirname, '../golden/atif/valid');
const validFiles = readdirSync(validDir).map((name) => path.join(validDir, name));
const rich = readFileSync(path.join(validDir, 'rich.json'), 'utf8');

/** `trajectory.<place>: <message>` */
function placeOf(problem: string): string {
  return /^trajectory\.(.*?): /s.exec(problem)?.[1] ?? problem;
}

/** Both name lists of parts after a function of their own. */
function shortened(place: string): string {
  return place.replace(/list\[function-after\[\w+\(\), ContentPart\]\]/, 'list[ContentPart]');
}

/** What a message must have in common with Harbor's. */
function kindOf(problem: string): string {
  const message = problem.slice(problem.indexOf(': ') + 2);
  const shared = [
    /^required field is missing$/,
    /^unexpected field \(not part of ATIF schema\)$/,
    /^expected \w+ type, got (?!null)\w+$/,
    /^Value error, /,
    /, got '[^']*'$/,
  ];
  return shared.map((pattern) => pattern.exec(message)?.[0]).find(Boolean) ?? 'in other words';
}

describe('ATIF as others read it', () => {
  let peers: AtifPeers;
  before(() => {
    peers = new AtifPeers();
  });
  after(() => peers[Symbol.asyncDispose]());

  test('every valid golden document is accepted by all', async () => {
    assert.ok(validFiles.length >= 10);
    await validateWithPeers(validFiles);
  });

  test('there are at least forty mutations', () => {
    assert.ok(mutations.length >= 40, String(mutations.length));
    assert.equal(new Set(mutations.map(({ title }) => title)).size, mutations.length);
  });

  for (const { title, change, at, atif } of mutations)
    test(`refused at the same place: ${title}`, async () => {
      const document = JSON.parse(rich) as object;
      change(document);
      const ours = validateTrajectory(document);
      const [theirs] = await peers.check([{ text: JSON.stringify(document) }]);
      assert.ok(theirs);
      assert.deepEqual(ours.map(placeOf), theirs.harbor.map(placeOf));
      assert.deepEqual(ours.map(placeOf).map(shortened), at, ours.join('\n'));
      assert.deepEqual(ours.map(kindOf), theirs.harbor.map(kindOf));
      assert.deepEqual(theirs.atif.map(shortened), atif?.at ?? at, 'the package atif');
      if (atif) assert.notDeepEqual(atif.at, at, 'a declared difference is one');
    });

  test('any value in any place is judged as Harbor judges it, at the same places', async () => {
    const random = seededRandom(7);
    const places = placesIn(JSON.parse(rich), '');
    const pick = <T>(list: readonly T[]): T => list[Math.floor(random() * list.length)] as T;
    let refused = 0;
    for (let round = 0; round < 600; round += 1) {
      const [place, value] = [pick(places), pick(values)];
      const document = JSON.parse(rich) as object;
      set(place, value)(document);
      const [theirs] = await peers.check([{ text: JSON.stringify(document) }]);
      const expected = theirs?.harbor.map(placeOf);
      const title = `${place} = ${JSON.stringify(value)}`;
      assert.deepEqual(validateTrajectory(document).map(placeOf), expected, title);
      if (expected?.length !== 0) refused += 1;
    }
    assert.ok(refused > 200 && refused < 600, `${refused} of 600 were refused`);
  });

  test('integers that lose digits are refused, where Harbor has more of them', async () => {
    for (const [digits, accepted] of [
      ['9007199254740991', true],
      ['9007199254740993', false],
    ] as const) {
      const text = rich.replace('151643', digits);
      const [theirs] = await peers.check([{ text }]);
      assert.deepEqual(theirs?.harbor, []);
      assert.equal(validateTrajectory(JSON.parse(text)).length === 0, accepted, digits);
    }
  });

  test('a document without its version is accepted, except by atif, which requires one', async () => {
    const document = JSON.parse(rich) as object;
    drop('schema_version')(document);
    const [theirs] = await peers.check([{ text: JSON.stringify(document) }]);
    assert.deepEqual(validateTrajectory(document), []);
    assert.deepEqual([theirs?.harbor, theirs?.atif], [[], ['schema_version']]);
  });

  test('reading coerces every value as Harbor does', async () => {
    for (const file of validFiles) {
      const text = readFileSync(file, 'utf8');
      const [theirs] = await peers.check([{ text, dump: true }]);
      const reading = readTrajectory(JSON.parse(text));
      assert.ok('trajectory' in reading, file);
      assert.deepEqual(withoutNulls(reading.trajectory), withoutNulls(theirs?.dump), file);
    }
  });

  test('reading and writing loses nothing, nulls of the author included', () => {
    const reading = readTrajectory(JSON.parse(rich));
    assert.ok('trajectory' in reading);
    const written = atifText(reading.trajectory, 0, '');
    assert.deepEqual(JSON.parse(written), JSON.parse(rich));
    assert.match(written, /^[\n -~]*$/, 'all of it is ASCII');
    assert.match(written, /"logprobs": \[-0\.123456789012345, -1e-7, -0\.0\]/);
  });

  test('half a surrogate pair is no error', async () => {
    const text = rich.replace('Analysis', '\\ud800');
    const [theirs] = await peers.check([{ text }]);
    assert.deepEqual(
      { ours: validateTrajectory(JSON.parse(text)), ...theirs },
      { ours: [], harbor: [], atif: [] },
    );
  });

  test('the same timestamps are read', async () => {
    const texts = timestamps.map((timestamp) => {
      const step = { step_id: 1, source: 'user', message: '', timestamp };
      const agent = { name: 'a', version: '1' };
      return { text: JSON.stringify({ schema_version: 'ATIF-v1.7', agent, steps: [step] }) };
    });
    const verdicts = await peers.check(texts);
    const theirs = timestamps.map((timestamp, index) => [
      timestamp,
      verdicts[index]?.harbor.length === 0,
    ]);
    assert.deepEqual(
      timestamps.map((timestamp) => [timestamp, isIsoTimestamp(timestamp)]),
      theirs,
    );
  });
});

/** Dotted paths of every value in a document. */
function placesIn(value: unknown, path: string): readonly string[] {
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, part]) => {
    const place = path === '' ? key : `${path}.${key}`;
    return [place, ...placesIn(part, place)];
  });
}

const values: readonly unknown[] = [
  ...[null, true, false, 0, 1, 2, 5, 1.5, -1, '', 'x', 'agent', 'text', [], {}, [1], [[]]],
  ...[[null], { a: 1 }, '5', ' 7 ', '1_0', '-0', '+3', '0x10', '1.', '.5', '1e3', '1.0', '1.50'],
  ...['true', 'ON', '2026-03-01'],
];

/** Harbor drops the nulls of free objects too; ours are kept and looked at elsewhere. */
function withoutNulls(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutNulls);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .filter(([, part]) => part !== null)
      .map(([key, part]) => [key, withoutNulls(part)]),
  );
}

// What newer Pythons read in another way (24:00, a fraction of a minute) has its rows in tests/wire/atif/iso-timestamp.test.ts.
const dates = [
  ...['2026-03-01', '20260301', '2026-W09-7', '2026W097', '2026-W09', '2026W09', '2020-W53-1'],
  ...['2021-W53', '2026-02-29', '2024-02-29', '1900-02-29', '0000-01-01', '0001-01-01'],
  ...['9999-12-31', '2026-13-01', '2026-00-10', '2026-3-1', '2026-W00-1', '2026-W01-0'],
  ...[
    '2026-W01-8',
    '26-03-01',
    '',
    '2026',
    '2026-03',
    '202603',
    '2026-060',
    '2026-0301',
    '2026-W097',
  ],
];
const times = [
  ...['', 'T', 'T10', 'T10:30', 'T1030', 'T10:30:59', 'T103059', 'T10:30:59.5', 'T10:30:59,123456'],
  ...['T10:30:59.1234567', 'T10:30:59.', 'T10:60', 'T10:30:60'],
  ...['T1', 'T10:3', ' 10:30', '_10:30', '😀10:30', 'T10:3059', 't10:30', '-10', 'x'],
];
const offsets = [
  '',
  'Z',
  '+00:00',
  '+0530',
  '-05',
  '+24:00',
  '+23:59:59.5',
  'z',
  '+',
  'ZZ',
  '-00:00',
];
const timestamps = [
  ...dates.flatMap((date) => ['', 'T10:30', 'Z', '-10:30'].map((rest) => date + rest)),
  ...times.flatMap((time) =>
    ['2026-03-01', '20260301', '2026-W09', '2026W097'].map((date) => date + time),
  ),
  ...['T10', 'T10:30:59.5', 'T103059', ''].flatMap((time) =>
    offsets.map((offset) => `2026-03-01${time}${offset}`),
  ),
];
