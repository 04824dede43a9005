import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, describe, test } from 'node:test';
import { silentLogger } from '../../../../src/core/logger.ts';
import {
  Recording,
  type RecordingOptions,
} from '../../../../src/agents/terminus-2/terminal/recording.ts';

const folder = await mkdtemp(path.join(tmpdir(), 'recording-'));
after(() => rm(folder, { recursive: true }));

/** A clock that stands still until it is told. */
class StillClock {
  ms = 5_000;
  now = (): Date => new Date(1_700_000_000_000);
  monotonicMs = (): number => this.ms;
  sleep = async (): Promise<void> => undefined;
}

let count = 0;
function open(overrides: Partial<RecordingOptions> = {}) {
  count += 1;
  const file = path.join(folder, `${count}.cast`);
  const clock = new StillClock();
  const options = {
    file,
    width: 160,
    height: 40,
    clock,
    logger: silentLogger,
    secrets: [],
    ...overrides,
  };
  const recording = new Recording(options);
  const lines = async (): Promise<unknown[]> => {
    await recording.close();
    const text = await readFile(file, 'utf8');
    return text
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as unknown);
  };
  return { recording, clock, lines };
}

describe('a recording', () => {
  test('begins with its header, and its events carry their time', async () => {
    const { recording, clock, lines } = open();
    recording.output(Buffer.from('a'));
    clock.ms += 1_500;
    recording.output(Buffer.from('\u001b[1mb\r\n'));
    recording.resize(80, 24);
    recording.mark('end');
    const [header, ...events] = await lines();
    assert.deepEqual(header, {
      version: 2,
      width: 160,
      height: 40,
      timestamp: 1_700_000_000,
      env: { TERM: 'xterm-256color', SHELL: '/bin/bash' },
    });
    assert.deepEqual(events, [
      [0, 'o', 'a'],
      [1.5, 'o', '\u001b[1mb\r\n'],
      [1.5, 'r', '80x24'],
      [1.5, 'm', 'end'],
    ]);
  });

  test('never cuts a character, and replaces what is none', async () => {
    const { recording, lines } = open();
    for (const byte of Buffer.from('ž🐧')) recording.output(Buffer.of(byte));
    recording.output(Buffer.of(0xff));
    const [, ...events] = await lines();
    assert.deepEqual(
      events.map((event) => (event as unknown[])[2]),
      ['ž', '🐧', '\ufffd'],
    );
  });

  test('a secret that comes in pieces is whole in one event, where it can be replaced', async () => {
    const secrets = ['sk-12345', 's1s2s3'];
    const { recording, lines } = open({ secrets });
    for (const char of 'is sk-12345? sk-12x s1s1s2s3') recording.output(Buffer.from(char));
    recording.resize(80, 24);
    recording.output(Buffer.from('.ss'));
    const [, ...events] = (await lines()) as [number, string, string][];
    const output = events.flatMap(([, kind, text]) => (kind === 'o' ? [text] : []));
    assert.equal(output.join(''), 'is sk-12345? sk-12x s1s1s2s3.ss');
    for (const secret of secrets) assert.ok(output.some((text) => text.includes(secret)));
  });

  test('a secret that a screen breaks at its edge is left out of the drawing', async () => {
    const { recording, lines } = open({ secrets: ['sk-0123456789abc'] });
    recording.output(Buffer.from('sk-'));
    recording.frame('key: sk-01234\n56789abc\nend\n');
    const [, ...events] = (await lines()) as [number, string, string][];
    assert.deepEqual(
      events.map(([, , text]) => text),
      ['sk-', '\u001b[0m\u001b[H\u001b[2Jkey: [REDACTED]\r\nend\u001b[0m'],
    );
  });

  test('draws a screen anew, line by line', async () => {
    const { recording, lines } = open();
    recording.frame('one\ntwo\n', { x: 3, y: 1 });
    const [, event] = await lines();
    assert.deepEqual(event, [0, 'o', '\u001b[0m\u001b[H\u001b[2Jone\r\ntwo\u001b[0m\u001b[2;4H']);
  });

  test('has a bound: it says that it is full, and takes no more', async () => {
    const { recording, lines } = open({ maxBytes: 1_000 });
    for (let index = 0; index < 100; index += 1) recording.output(Buffer.alloc(50, 'x'));
    assert.equal(recording.isOver, true);
    const all = await lines();
    assert.deepEqual((all.at(-1) as unknown[]).slice(1), ['m', 'the recording is full']);
    assert.ok(JSON.stringify(all).length < 1_200);
  });

  test('that cannot be written harms nothing', async () => {
    const { recording } = open({ file: path.join(folder, 'no-such-folder', 'x.cast') });
    recording.output(Buffer.from('a'));
    await recording.close();
    recording.output(Buffer.from('b'));
    await recording.close();
  });
});
