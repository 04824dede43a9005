import assert from 'node:assert/strict';
import { test } from 'node:test';
import { hangKinds } from '../../src/wire/rollout/diagnosis.ts';
import { whyNoRunc } from '../environments/local/local-bench.ts';
import { injectHangs } from './injected-hangs.ts';

const reason = whyNoRunc();

test(
  'every kind of hang, brought about for real, is named with who has to act and what is waited for',
  { skip: reason ?? false, timeout: 300_000 },
  async () => {
    const { named, problems } = await injectHangs({ asksProgram: (kind) => kind === 'paused' });
    assert.deepEqual(problems, []);
    const found = new Set(named.filter(({ namedMs }) => namedMs !== null).map(({ kind }) => kind));
    assert.deepEqual(
      hangKinds.filter((kind) => !found.has(kind)),
      [],
    );
  },
);
