import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import { Command } from 'commander';
import { addSessionsCommands } from '../../src/cli/commands/sessions.ts';
import type { CommandScope } from '../../src/cli/command-scope.ts';
import { exitCodes } from '../../src/cli/exit-codes.ts';
import { assembleSamples } from '../../src/sessions/samples/assemble.ts';
import { sampleLines } from '../../src/sessions/samples/sample-lines.ts';
import { TokenForest } from '../../src/sessions/token-forest.ts';
import { syntheticRollout } from '../sessions/synthetic-rollouts.ts';

interface Ended {
  exitCode: number;
  out: string;
  err: string;
}

async function sessions(argv: readonly string[]): Promise<Ended> {
  const ended: Ended = { exitCode: -1, out: '', err: '' };
  const scope: CommandScope = {
    terminal: {
      ...{ isInteractive: false, columns: 80, ask: () => Promise.resolve(null) },
      out: (text) => (ended.out += `${text}\n`),
      handOver: async (text) => void (ended.out += text),
      err: (text) => (ended.err += `${text}\n`),
    },
    ports: () => Promise.reject(new Error('not needed')),
    signal: new AbortController().signal,
    announceInterruptsBy: () => undefined,
    releaseInterrupts: () => undefined,
  };
  const program = new Command('sessions').exitOverride();
  addSessionsCommands(program, async (action) => {
    ended.exitCode = await action(scope);
  });
  await program.parseAsync(argv, { from: 'user' });
  return ended;
}

test('audit says of every file what was checked, or what is wrong, and exits with 1 where anything is', async () => {
  const dir = mkdtempSync(path.join(os.tmpdir(), 'slipway-sessions-'));
  try {
    const forest = new TokenForest({ budget: null });
    for (const { given } of syntheticRollout(4, 6).calls) forest.add(given);
    const text = [
      ...sampleLines(forest, assembleSamples(forest), {
        ...{ rolloutId: 'r', reward: null, callsWithoutIds: 2 },
      }),
    ].join('');
    const good = path.join(dir, 'good.ndjson');
    const bad = path.join(dir, 'bad.ndjson');
    writeFileSync(good, text);
    // One digit of one id.
    writeFileSync(
      bad,
      text.replace(/"tokens":\[(\d)/, (_, digit: string) => `"tokens":[${(Number(digit) % 9) + 1}`),
    );

    const fine = await sessions(['audit', good]);
    assert.equal(fine.exitCode, exitCodes.ok);
    assert.match(
      fine.out,
      /^✓ .*good.ndjson: \d+ samples, .* 2 calls without ids, .* chain [0-9a-f]{16}$/m,
    );

    const broken = await sessions(['audit', bad, good, path.join(dir, 'none')]);
    assert.equal(broken.exitCode, exitCodes.failed);
    assert.match(broken.err, /bad.ndjson: line 2: call 1 is not what the engine was given/);
    assert.match(broken.err, /none: .*no such file/);
    assert.match(broken.out, /good.ndjson/);

    const { out } = await sessions(['audit', '--json', bad, good]);
    const { files } = JSON.parse(out) as { readonly files: readonly { readonly valid: boolean }[] };
    assert.deepEqual(
      files.map(({ valid }) => valid),
      [false, true],
    );
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
});
