import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtemp, readdir, readFile, rename, rm, stat, symlink, unlink } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';
import { systemClock } from '../../src/core/clock.ts';
import { SecretMask } from '../../src/telemetry/secret-mask.ts';
import { ServerLog, type ServerLogOptions } from '../../src/telemetry/server-log.ts';

interface Line {
  readonly time: string;
  readonly level: string;
  readonly message: string;
  readonly [field: string]: unknown;
}

describe('the log of a server', () => {
  let dir: string;
  let count = 0;
  before(async () => {
    dir = await mkdtemp(path.join(os.tmpdir(), 'slipway-log-'));
  });
  after(async () => {
    await rm(dir, { recursive: true });
  });

  const newFile = (): string => path.join(dir, `${(count += 1)}`, 'logs', 'server.ndjson');
  const openLog = (file: string, options: Partial<ServerLogOptions> = {}): ServerLog =>
    new ServerLog(file, {
      ...{ level: 'info', clock: systemClock, mask: new SecretMask() },
      ...options,
    });
  const linesOf = async (file: string): Promise<Line[]> => {
    const text = await readFile(file, 'utf8');
    assert.ok(text.endsWith('\n'));
    return text
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as Line);
  };

  it('is JSON lines with time, level, message and fields, in a file of its owner', async () => {
    const file = newFile();
    {
      await using log = openLog(file);
      log.log('debug', 'not this');
      log.log('info', 'first', { rolloutId: 'r1', error: new TypeError('bad'), big: 1n });
      log.log('error', 'second', { message: 'a field of this name', time: 0 });
    }
    const [first, second, ...more] = await linesOf(file);
    assert.deepEqual(more, []);
    const { time, ...fields } = first!;
    assert.ok(Math.abs(Date.parse(time) - Date.now()) < 600_000);
    assert.deepEqual(fields, {
      ...{ level: 'info', message: 'first', rolloutId: 'r1' },
      ...{ error: 'TypeError: bad', big: '1' },
    });
    assert.deepEqual([second?.level, second?.message], ['error', 'second']);
    assert.equal((await stat(file)).mode & 0o777, 0o600);
  });

  it('keeps a line whose fields are no plain values, and cuts one that is endless', async () => {
    const file = newFile();
    const loop: Record<string, unknown> = {};
    loop['self'] = loop;
    {
      await using log = openLog(file);
      log.log('info', 'loop', { loop });
      log.log('info', 'long', { text: 'x'.repeat(1_000_000) });
    }
    const [first, second] = await linesOf(file);
    assert.deepEqual(first?.['unreadableFields'], ['loop']);
    assert.equal(second?.message, 'long');
    assert.ok(JSON.stringify(second).length < 100_000);
  });

  it('shows no known secret', async () => {
    const file = newFile();
    const mask = new SecretMask();
    mask.add(['sk-canary-"quoted"']);
    {
      await using log = openLog(file, { mask });
      log.log('info', 'with sk-canary-"quoted"', { url: 'http://x/?k=sk-canary-"quoted"' });
      // A line that is cut, with a secret in every place where that can be.
      log.log('info', 'long sk-canary-"quoted"', { text: 'sk-canary-"quoted" '.repeat(20_000) });
    }
    const [first, second] = (await readFile(file, 'utf8')).split('\n');
    assert.equal(first?.split('[REDACTED]').length, 3);
    for (const line of [first, second]) assert.ok(!line?.includes('canary'));
  });

  it('is rotated by size, with a bounded number of old files and no line lost', async () => {
    const file = newFile();
    {
      await using log = openLog(file, { maxBytes: 4_000, kept: 3 });
      for (let index = 0; index < 400; index += 1) {
        log.log('info', 'line', { index });
        if (index % 10 === 9) await log.flush();
      }
    }
    const names = (await readdir(path.dirname(file))).sort();
    const base = path.basename(file);
    assert.deepEqual(names, [base, `${base}.1`, `${base}.2`, `${base}.3`]);
    const seen: unknown[] = [];
    for (const name of [...names.slice(1).reverse(), base]) {
      const kept = path.join(path.dirname(file), name);
      assert.ok((await stat(kept)).size <= 4_000);
      seen.push(...(await linesOf(kept)).map((line) => line['index']));
    }
    const first = Number(seen[0]);
    assert.ok(first > 0);
    assert.deepEqual(
      seen,
      Array.from({ length: 400 - first }, (_, index) => first + index),
    );
  });

  it('goes on in a new file when another process took the old one away', async () => {
    const file = newFile();
    await using log = openLog(file);
    log.log('info', 'before');
    await log.flush();
    await rename(file, `${file}.taken`);
    log.reopen();
    log.log('info', 'after');
    await log.flush();
    assert.deepEqual(
      (await linesOf(`${file}.taken`)).map(({ message }) => message),
      ['before'],
    );
    assert.deepEqual(
      (await linesOf(file)).map(({ message }) => message),
      ['after'],
    );
  });

  it('loses lines on a full disk, says how many, and goes on when there is space', async () => {
    const file = newFile();
    await using log = openLog(file);
    log.log('info', 'before');
    await log.flush();
    const kept = `${file}.kept`;
    await rename(file, kept);
    await symlink('/dev/full', file);
    log.reopen();
    for (let index = 0; index < 3; index += 1) {
      log.log('info', 'lost', { index });
      await log.flush();
    }
    assert.equal(log.lost, 3);
    await unlink(file);
    await rename(kept, file);
    log.log('info', 'after');
    await log.flush();
    const lines = await linesOf(file);
    assert.deepEqual(
      lines.map(({ message }) => message),
      ['before', 'after', 'lines of the log were lost'],
    );
    assert.equal(lines[2]?.['lines'], 3);
    assert.equal(log.lost, 3);
  });

  it('begins a line of its own after one that a full disk cut', async (context) => {
    const small = await mkdtemp(path.join(dir, 'small-'));
    try {
      execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=16k', 'slipway-test', small], {
        stdio: 'ignore',
      });
    } catch {
      context.skip('needs the right to mount');
      return;
    }
    try {
      const file = path.join(small, 'server.ndjson');
      await using log = openLog(file);
      for (let index = 0; index < 40; index += 1) {
        log.log('info', 'line', { index, text: 'x'.repeat(700) });
        await log.flush();
      }
      const { size } = await stat(file);
      assert.ok(log.lost > 0 && size > 0);
      const full = await readFile(file, 'utf8');
      assert.ok(!full.endsWith('\n'), 'the disk is full in the middle of a line');
      execFileSync('mount', ['-o', 'remount,size=64k', small], { stdio: 'ignore' });
      log.log('info', 'after');
      await log.flush();
      const text = await readFile(file, 'utf8');
      assert.equal(text[full.length], '\n');
      const after = text.slice(full.length).trim().split('\n');
      assert.deepEqual(
        after.map((line) => (JSON.parse(line) as Line).message),
        ['after', 'lines of the log were lost'],
      );
    } finally {
      execFileSync('umount', ['-l', small]);
    }
  });
});
