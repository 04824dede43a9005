/** Negative controls of the server's suite: one that is broken in one way fails the case that is about it. */
import assert from 'node:assert/strict';
import path from 'node:path';
import { describe, it } from 'node:test';
import { ServerBench } from './server/bench.ts';
import { serverCases } from './server-suite.ts';

const broken = [path.join(import.meta.dirname, 'server/broken-server.ts')];
const rows = [
  {
    what: 'sends nobody away',
    id: 'admission.full',
    program: broken,
    variables: { BREAK: 'places' },
    expected: /202/,
  },
  {
    what: 'ends no model calls',
    id: 'abort.calls',
    program: broken,
    variables: { BREAK: 'abort' },
    expected: /cancelled_running/,
  },
  {
    what: 'forgets at its death what was to be told',
    id: 'death.server',
    program: [path.join(import.meta.dirname, '../chaos/serve-without-outbox.ts')],
    variables: {},
    expected: /it never came: grader of killed-server-told/,
  },
] as const;

describe('the suite of servers', { concurrency: true, timeout: 120_000 }, () => {
  for (const { what, id, program, variables, expected } of rows)
    it(`finds one that ${what}`, async () => {
      await using bench = await ServerBench.open('memory', { program, variables });
      bench.patienceMs = 3_000;
      const found = serverCases.find((one) => one.id === id);
      await assert.rejects(async () => await found?.run(bench), { message: expected });
    });
});
