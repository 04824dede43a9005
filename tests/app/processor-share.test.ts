import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { text } from 'node:stream/consumers';
import { describe, it } from 'node:test';

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

/** CAP_SYS_NICE. */
const capability = 1n << 23n;

function isPossible(): boolean {
  if (!existsSync('/proc/self/autogroup')) return false;
  const held = /^CapEff:\s*([0-9a-f]+)$/m.exec(readFileSync('/proc/self/status', 'utf8'))?.[1];
  return (BigInt(`0x${held ?? '0'}`) & capability) !== 0n;
}

describe('the share of the processor', () => {
  it(
    'is taken by the server, not by the programs that it starts in sessions of their own, and given back',
    { skip: isPossible() ? false : 'needs CAP_SYS_NICE and autogroups' },
    async () => {
      const child = spawn(process.execPath, ['--input-type=module', '--eval', program], {
        detached: true,
        stdio: ['ignore', 'pipe', 'inherit'],
      });
      const [out] = await Promise.all([text(child.stdout), once(child, 'close')]);
      assert.deepEqual(JSON.parse(out), { before: 0, during: -10, started: 0, after: 0 });
    },
  );
});
