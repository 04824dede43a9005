import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { describe, it } from 'node:test';
import { AskedPrecedence, takePrecedence } from '../../src/app/serve/processor-share.ts';
import { whyNoPrecedence } from './autogroups.ts';

const source = new URL('../../src/app/serve/processor-share.ts', import.meta.url).href;
/** A session of its own, so that the test's keeps its share. */
const program = `
  const { takePrecedence } = await import(${JSON.stringify(source)});
  const { readFileSync } = await import('node:fs');
  const { spawn } = await import('node:child_process');
  const { once } = await import('node:events');
  const { text } = await import('node:stream/consumers');
  const nice = (text) => Number(text.trim().split(' ').at(-1));
  const own = () => nice(readFileSync('/proc/self/autogroup', 'utf8'));
  const before = own();
  const share = takePrecedence();
  const during = own();
  const child = spawn('cat', ['/proc/self/autogroup'], { detached: true, stdio: ['ignore', 'pipe', 'inherit'] });
  const [shown] = await Promise.all([text(child.stdout), once(child, 'close')]);
  share[Symbol.dispose]();
  console.log(JSON.stringify({ before, during, started: nice(shown), after: own() }));
`;

describe('the share of the processor', () => {
  it(
    'is taken by the server, not by the programs that it starts in sessions of their own, and given back',
    { skip: whyNoPrecedence() },
    async () => {
      const child = spawn(process.execPath, ['--input-type=module', '--eval', program], {
        detached: true,
        stdio: ['ignore', 'pipe', 'inherit'],
      });
      const [out] = await Promise.all([text(child.stdout), once(child, 'close')]);
      assert.deepEqual(JSON.parse(out), { before: 0, during: -10, started: 0, after: 0 });
    },
  );

  const rows: readonly (readonly [title: string, before: string, during: string, after: string])[] =
    [
      ['gives back what a session had', '/autogroup-7 nice 5\n', '-10', '5'],
      ['gives back what a killed server left', '/autogroup-7 nice -10\n', '-10', '0'],
      ...['/autogroup-7 nice -15\n', ''].map(
        (text) => ['leaves alone what it does not know', text, text, text] as const,
      ),
    ];
  for (const [title, before, during, after] of rows)
    it(`${title}: ${before.trim() || 'no file'}`, async () => {
      const dir = await mkdtemp(path.join(os.tmpdir(), 'slipway-share-'));
      const file = path.join(dir, 'autogroup');
      try {
        await writeFile(file, before);
        const share = takePrecedence(file);
        assert.equal(await readFile(file, 'utf8'), during);
        share[Symbol.dispose]();
        assert.equal(await readFile(file, 'utf8'), after);
      } finally {
        await rm(dir, { recursive: true, force: true });
      }
    });

  it('lasts as long as one of several asks for it', async () => {
    const dir = await mkdtemp(path.join(os.tmpdir(), 'slipway-share-'));
    const file = path.join(dir, 'autogroup');
    try {
      await writeFile(file, '/autogroup-7 nice 2\n');
      const precedence = new AskedPrecedence(file);
      const first = precedence.ask();
      assert.equal(await readFile(file, 'utf8'), '-10');
      const second = precedence.ask();
      first[Symbol.dispose]();
      assert.equal(await readFile(file, 'utf8'), '-10');
      second[Symbol.dispose]();
      assert.equal(await readFile(file, 'utf8'), '2');
      await writeFile(file, '/autogroup-7 nice 0\n');
      const later = precedence.ask();
      assert.equal(await readFile(file, 'utf8'), '-10');
      later[Symbol.dispose]();
      assert.equal(await readFile(file, 'utf8'), '0');
    } finally {
      await rm(dir, { recursive: true, force: true });
    }
  });
});
