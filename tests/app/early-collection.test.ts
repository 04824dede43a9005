import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import path from 'node:path';
import { describe, it } from 'node:test';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';

const file = path.join(import.meta.dirname, '../../src/app/serve/early-collection.ts');

/** How high the heap gets while 30 MiB are alive, each for a while, in MiB; `before` runs first. */
async function peakMb(before: string): Promise<number> {
  const program = `
    ${before}
    const held = [];
    let peak = 0;
    for (let step = 0; step < 10_000; step += 1) {
      held[step % 2_000] = new Array(2_000).fill(step + 0.5);
      if (step % 50 === 0) peak = Math.max(peak, process.memoryUsage().heapTotal);
    }
    console.log(peak / 2 ** 20);`;
  const argv = ['--max-semi-space-size=1', '--input-type=module', '--eval', program];
  const { stdout } = await promisify(execFile)(process.execPath, argv);
  return Number(stdout);
}

describe('the heap of a server', () => {
  it('grows less between two collections of all of it', async () => {
    const early = `(await import(${JSON.stringify(pathToFileURL(file))})).collectEarly();`;
    const [usual, bounded] = await Promise.all([peakMb(''), peakMb(early)]);
    assert.ok(bounded < 0.8 * usual, `${bounded} MiB instead of ${usual} MiB`);
  });
});
