import assert from 'node:assert/strict';
import { mkdtempDisposable, readdir, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import { never } from '../../../src/core/linked-abort.ts';
import { LocalBench, whyNoRunc } from './local-bench.ts';

const skip = whyNoRunc() ?? false;

test(
  'a sandbox of namespaces sees a layer, and root in it cannot write there',
  { skip },
  async () => {
    using bench = new LocalBench();
    await using folder = await mkdtempDisposable(path.join(tmpdir(), 'layer-'));
    await writeFile(path.join(folder.path, 'word'), 'of the host');
    const provider = bench.provider({ runtime: 'unshare' });
    await provider.preflight(never);
    assert.equal(provider.capabilities.layers, true);
    const layers = [{ hostDir: folder.path, at: '/opt/a/layer' }];
    const environment = provider.environment(bench.spec({ layers }));
    try {
      await environment.start({ signal: never });
      const run = (command: string) => environment.exec({ command }, never);
      assert.equal((await run('cat /opt/a/layer/word')).stdout, 'of the host');
      for (const command of [
        'echo new > /opt/a/layer/new',
        'rm /opt/a/layer/word',
        'mount -o remount,bind,rw /opt/a/layer && echo new > /opt/a/layer/new',
      ])
        assert.notEqual((await run(command)).exitCode, 0, command);
    } finally {
      await environment.destroy();
      await provider.close();
    }
    assert.deepEqual(await readdir(folder.path), ['word']);
    assert.deepEqual(bench.leftovers(), []);
  },
);
