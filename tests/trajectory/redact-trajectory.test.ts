import assert from 'node:assert/strict';
import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { maxPartBytes } from '../../src/trajectory/document-parts.ts';
import { validateTrajectory } from '../../src/trajectory/validate.ts';
import { redactFolder } from '../../src/trial/redact.ts';
import type { AtifTrajectory } from '../../src/wire/atif/atif.ts';

const metrics = { prompt_token_ids: [1, 123456], completion_token_ids: [3], logprobs: [-0.5] };

function documentWith(text: string): object {
  return {
    schema_version: 'ATIF-v1.6',
    session_id: null,
    agent: { name: 'a', version: '1' },
    steps: [
      { step_id: 1, source: 'user', message: 'begin', extra: { n: null } },
      { step_id: 2, source: 'agent', message: `say ${text}.`, metrics },
      { step_id: 3, source: 'agent', message: 'done', metrics },
    ],
    subagent_trajectories: [
      {
        trajectory_id: 's',
        agent: { name: 'b', version: '1' },
        steps: [{ step_id: 1, source: 'agent', message: text, metrics }],
      },
    ],
  };
}

describe('secrets in a trajectory that an agent brings', () => {
  let dir = '';
  before(async () => {
    dir = await mkdtemp(path.join(os.tmpdir(), 'redact-brought-'));
  });
  after(() => rm(dir, { recursive: true }));

  const secrets = [
    'plain-secret',
    'with "quotes"',
    'back\\slash\\',
    'café-ünïcode-😀',
    'a/b/c/d/e',
  ];
  const layouts: Readonly<Record<string, (document: object) => string>> = {
    'on one line': (document) => JSON.stringify(document),
    'with indent': (document) => JSON.stringify(document, null, 2),
    'all in ASCII': (document) =>
      JSON.stringify(document, null, 4).replace(
        /[\u0080-\uffff]/g,
        (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0').toUpperCase()}`,
      ),
  };
  for (const secret of secrets)
    for (const [layout, write] of Object.entries(layouts))
      test(`${secret}, ${layout}: the document stays valid and its ids are marked`, async () => {
        const file = path.join(dir, 'trajectory.json');
        await writeFile(file, write(documentWith(secret)), { mode: 0o600 });
        await redactFolder(dir, [secret]);
        const text = await readFile(file, 'utf8');
        const document = JSON.parse(text) as AtifTrajectory;
        assert.deepEqual(validateTrajectory(document), []);
        const [first, second, third] = document.steps;
        assert.deepEqual(first?.extra, { n: null });
        assert.equal(second?.message, 'say [REDACTED].');
        assert.deepEqual(second.metrics, { prompt_token_ids: [1, 123456] });
        assert.deepEqual(third?.metrics, { completion_token_ids: [3], logprobs: [-0.5] });
        for (const step of [second, third, document.subagent_trajectories?.[0]?.steps[0]])
          assert.deepEqual(step?.extra?.['slipway'], {
            trainable: false,
            reason: 'secret-redacted',
          });
        assert.equal((await stat(file)).mode & 0o777, 0o600);
        assert.deepEqual(await readdir(dir), ['trajectory.json']);
      });

  test('a secret of digits leaves numbers alone', async () => {
    const file = path.join(dir, 'trajectory.json');
    await writeFile(file, JSON.stringify(documentWith('code 123456')));
    await redactFolder(dir, ['123456']);
    const document = JSON.parse(await readFile(file, 'utf8')) as AtifTrajectory;
    assert.deepEqual(document.steps[1]?.metrics?.prompt_token_ids, [1, 123456]);
    assert.equal(document.steps[1].message, 'say code [REDACTED].');
  });

  test('parts without a secret stay byte for byte, and so does a document without any', async () => {
    const file = path.join(dir, 'trajectory.json');
    const step =
      '{"step_id" : 1,"source":"user","message":"\\u0068i","extra":{"n":12345678901234567890,"f":1.0}}';
    const text = `{ "schema_version":"ATIF-v1.7","notes":"NOTE","steps":[ ${step} ],"agent":{"version":"1","name":"a"} }`;
    await writeFile(file, text);
    const { ino } = await stat(file);
    await redactFolder(dir, ['plain-secret']);
    assert.equal(await readFile(file, 'utf8'), text);
    assert.equal((await stat(file)).ino, ino, 'it was not written');
    await writeFile(file, text.replace('NOTE', 'plain-secret'));
    await redactFolder(dir, ['plain-secret']);
    const written = await readFile(file, 'utf8');
    assert.ok(written.includes(step) && written.includes('"notes": "[REDACTED]"'));
    assert.ok(written.includes('{"version":"1","name":"a"}'));
    JSON.parse(written);
  });

  test('tool definitions behind the steps tell their secret to every prompt', async () => {
    const file = path.join(dir, 'trajectory.json');
    const { agent, ...rest } = documentWith('nothing') as { agent: object };
    const described = { ...agent, tool_definitions: [{ d: 'plain-secret' }] };
    await writeFile(file, JSON.stringify({ ...rest, agent: described }));
    await redactFolder(dir, ['plain-secret']);
    const document = JSON.parse(await readFile(file, 'utf8')) as AtifTrajectory;
    assert.deepEqual(document.steps[1]?.metrics, {
      completion_token_ids: [3],
      logprobs: [-0.5],
    });
  });

  for (const [title, cut] of [
    ['cut off', -5],
    ['cut off in the middle', -300],
  ] as const)
    test(`a document that is ${title} is cleaned as any file`, async () => {
      const file = path.join(dir, 'trajectory.json');
      const text = JSON.stringify(documentWith('with "quotes"')).slice(0, cut);
      await writeFile(file, text);
      await redactFolder(dir, ['with "quotes"']);
      assert.equal(
        await readFile(file, 'utf8'),
        text.replaceAll('with \\"quotes\\"', '[REDACTED]'),
      );
    });

  test('spilled steps that were left are cleaned line by line', async () => {
    const file = path.join(dir, 'trajectory.steps.ndjson');
    const { steps } = documentWith('code 123456') as AtifTrajectory;
    const lines = [{ slipway_spill: 1, head: { notes: 'n 123456' } }, ...steps].map((line) =>
      JSON.stringify(line),
    );
    await writeFile(file, `${lines.join('\n')}\n{"step_id":4,"message":"123456`);
    await redactFolder(dir, ['123456']);
    const [head = '', first = '', second = '', third = '', torn] = (
      await readFile(file, 'utf8')
    ).split('\n');
    assert.deepEqual(JSON.parse(head), { slipway_spill: 1, head: { notes: 'n [REDACTED]' } });
    assert.equal(first, lines[1]);
    assert.match(second, /"say code \[REDACTED\]\.".*"prompt_token_ids":\[1,123456\]/);
    assert.match(third, /"completion_token_ids":\[3\].*"trainable":false/);
    assert.equal(torn, '{"step_id":4,"message":"[REDACTED]');
    await rm(file);
  });

  const deep = `${'['.repeat(100_000)}"plain-secret"${']'.repeat(100_000)}`;
  const long = 'x'.repeat(maxPartBytes + 1_000_000);
  for (const [title, name, text] of [
    ['a line without end', 'a.steps.ndjson', `plain-secret ${long}`],
    ['a line nested too deep', 'a.steps.ndjson', `{"a":${deep}}\n`],
    ['a part without end', 'a.json', `{"s":"ATIF-v1.7","t":"plain-secret ${long}"}`],
    ['a part nested too deep', 'a.json', `{"s":"ATIF-v1.7","t":${deep}}`],
  ] as const)
    test(`what is too much for a trajectory is cleaned as any file: ${title}`, async () => {
      const file = path.join(dir, name);
      await writeFile(file, text);
      await redactFolder(dir, ['plain-secret']);
      const expected = text.replace('plain-secret', '[REDACTED]');
      assert.ok((await readFile(file, 'utf8')) === expected);
      await rm(file);
    });

  test('lines without a secret stay byte for byte, whatever they hold', async () => {
    const file = path.join(dir, 'a.steps.ndjson');
    const odd = Buffer.concat([Buffer.from('{"a": "\u2028" }\r\n\n'), Buffer.from([0xff, 0x0a])]);
    await writeFile(file, Buffer.concat([odd, Buffer.from('{"b":"plain-secret"}\n'), odd]));
    await redactFolder(dir, ['plain-secret']);
    const expected = Buffer.concat([odd, Buffer.from('{"b":"[REDACTED]"}\n'), odd]);
    assert.deepEqual(await readFile(file), expected);
    await rm(file);
  });

  test('an author who fills the places with anything breaks nothing', async () => {
    const file = path.join(dir, 'trajectory.json');
    const steps = [
      null,
      5,
      'plain-secret',
      [],
      { metrics: 'x', extra: 'plain-secret' },
      { message: 'plain-secret', metrics, extra: 'text' },
    ];
    const odd = { schema_version: 'ATIF-v1.7', agent: 'plain-secret', steps, extra: [], notes: {} };
    await writeFile(file, JSON.stringify(odd));
    await redactFolder(dir, ['plain-secret']);
    const text = await readFile(file, 'utf8');
    assert.ok(!text.includes('plain-secret'));
    assert.equal((JSON.parse(text) as { steps: unknown[] }).steps.length, steps.length);
  });
});
