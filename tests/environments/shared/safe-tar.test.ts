import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { Readable } from 'node:stream';
import { afterEach, beforeEach, describe, it } from 'node:test';
import * as tar from 'tar-stream';
import { isRolloutError } from '../../../src/core/errors.ts';
import { never } from '../../../src/core/linked-abort.ts';
import {
  defaultMaxBytes,
  packDir,
  packFile,
  unpackInto,
} from '../../../src/environments/shared/safe-tar.ts';

const defaults = { strip: 0, exclude: [], maxBytes: defaultMaxBytes, signal: never };

describe('tar between host and sandbox', () => {
  let root = '';
  beforeEach(() => {
    root = mkdtempSync(path.join(os.tmpdir(), 'slipway-tar-'));
  });
  afterEach(() => rmSync(root, { recursive: true, force: true }));
  const at = (...parts: string[]): string => path.join(root, ...parts);

  function archive(
    entries: readonly (Partial<tar.Header> & { name: string; body?: string })[],
  ): Readable {
    const pack = tar.pack();
    for (const { body, ...header } of entries) pack.entry(header, body ?? '');
    pack.finalize();
    return Readable.from(pack);
  }

  it('refuses entries nested too deeply, or with paths that the host could not name, at the first of them', async () => {
    for (const name of ['d/'.repeat(3_000), `${'n'.repeat(200)}/`.repeat(15)]) {
      const to = at('out');
      await assert.rejects(
        unpackInto(archive([{ name, type: 'directory' }]), to, defaults),
        (error) => isRolloutError(error, 'TRANSFER_FAILED') && error.remedy !== null,
      );
      assert.deepEqual(readdirSync(to), []);
    }
  });

  it('packs names with spaces and unicode, modes, empty folders, and links as links', async () => {
    mkdirSync(at('from', 'leer ü'), { recursive: true });
    writeFileSync(at('from', 'run me.sh'), 'x'.repeat(300_000));
    chmodSync(at('from', 'run me.sh'), 0o755);
    writeFileSync(at('from', 'empty'), '');
    symlinkSync('/etc/passwd', at('from', 'link'));
    writeFileSync(at('from', 'n'.repeat(180)), 'long');
    mkdirSync(at('seen'));
    const pack = packDir(at('from'));
    execFileSync('tar', ['-x', '-C', at('seen')], { input: await collect(pack) });
    assert.equal(readFileSync(at('seen', 'run me.sh'), 'utf8').length, 300_000);
    assert.equal(lstatSync(at('seen', 'run me.sh')).mode & 0o777, 0o755);
    assert.equal(readlinkSync(at('seen', 'link')), '/etc/passwd');
    assert.ok(existsSync(at('seen', 'leer ü')));
    assert.equal(readFileSync(at('seen', 'n'.repeat(180)), 'utf8'), 'long');
    assert.equal(readFileSync(at('seen', 'empty'), 'utf8'), '');
  });

  it('refuses to pack a link as a file', async () => {
    symlinkSync('/etc/passwd', at('link'));
    await assert.rejects(collect(packFile(at('link'), 'x')));
  });

  it('writes files and folders, leaves links and devices out and names them', async () => {
    const source = archive([
      { name: 'a/', type: 'directory' },
      { name: 'a/x', body: 'hello', mode: 0o755 },
      { name: 'a/link', type: 'symlink', linkname: '/etc' },
      { name: 'a/hard', type: 'link', linkname: '/etc/passwd' },
      { name: 'fifo', type: 'fifo' },
    ]);
    const { skipped } = await unpackInto(source, at('to'), defaults);
    assert.deepEqual(skipped, ['a/link', 'a/hard', 'fifo']);
    assert.equal(readFileSync(at('to', 'a', 'x'), 'utf8'), 'hello');
    assert.equal(existsSync(at('to', 'a', 'link')), false);
  });

  it('never writes through a link that stands at the target already', async () => {
    mkdirSync(at('to'));
    mkdirSync(at('outside'));
    writeFileSync(at('outside', 'f'), 'safe');
    symlinkSync(at('outside'), at('to', 'dir'));
    symlinkSync(at('outside', 'f'), at('to', 'f'));
    const source = archive([
      { name: 'dir/f', body: 'evil' },
      { name: 'f', body: 'evil' },
    ]);
    await unpackInto(source, at('to'), defaults);
    assert.equal(readFileSync(at('outside', 'f'), 'utf8'), 'safe');
    assert.equal(readFileSync(at('to', 'dir', 'f'), 'utf8'), 'evil');
  });

  it('refuses entries that climb out', async () => {
    const source = archive([{ name: '../evil', body: 'x' }]);
    await assert.rejects(unpackInto(source, at('to'), defaults), (error) =>
      isRolloutError(error, 'ARCHIVE_UNSAFE'),
    );
    assert.equal(existsSync(at('evil')), false);
  });

  it('takes an absolute name as relative to the target', async () => {
    await unpackInto(archive([{ name: '/abs', body: 'x' }]), at('to'), defaults);
    assert.ok(existsSync(at('to', 'abs')));
  });

  it('stops at the byte limit', async () => {
    const source = archive([{ name: 'big', body: 'x'.repeat(2000) }]);
    await assert.rejects(unpackInto(source, at('to'), { ...defaults, maxBytes: 1000 }), (error) =>
      isRolloutError(error, 'TRANSFER_FAILED'),
    );
  });

  it('strips leading components and leaves excluded files and folders out', async () => {
    const source = archive([
      { name: 'top/keep.txt', body: '1' },
      { name: 'top/cache/x', body: '2' },
      { name: 'top/deep/y.log', body: '3' },
    ]);
    await unpackInto(source, at('to'), { ...defaults, strip: 1, exclude: ['cache', '*.log'] });
    assert.ok(existsSync(at('to', 'keep.txt')));
    assert.equal(existsSync(at('to', 'cache')), false);
    assert.equal(existsSync(at('to', 'deep')), false);
  });

  it('rejects on a truncated stream and on an aborted signal', async () => {
    const whole = await collect(archive([{ name: 'x', body: 'y'.repeat(5000) }]));
    await assert.rejects(unpackInto(Readable.from([whole.subarray(0, 1500)]), at('to'), defaults));
    const abort = new AbortController();
    abort.abort(new Error('stop'));
    await assert.rejects(
      unpackInto(Readable.from([whole]), at('to2'), { ...defaults, signal: abort.signal }),
    );
  });
});

async function collect(stream: AsyncIterable<Buffer>): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of stream) chunks.push(chunk);
  return Buffer.concat(chunks);
}
