/** Real command line agents of the vendors, unchanged, in real sandboxes; their programs are installed once on this machine. */
import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { describe, test } from 'node:test';
import type { AgentCheck } from '../../src/app/check-agent.ts';
import { whyNoRunc } from '../environments/local/local-bench.ts';
import { startSlipway } from '../support/slipway-cli.ts';
import { rollOutOnce } from './clis/rolled-out.ts';
import { cliCases, cliSubjects, runCase, silentCase } from './clis/cli-cases.ts';

const [turn] = cliCases;

describe(
  'command line agents',
  { skip: whyNoRunc() ?? false, timeout: 600_000, concurrency: 4 },
  () => {
    test('slipway agents check lets one solve a small task, and slipway agents ls lists it', async () => {
      const stateDir = await mkdtemp(path.join(os.tmpdir(), 'slipway-agents-'));
      try {
        const run = (...args: readonly string[]) =>
          startSlipway(['agents', ...args], { stateDir }).ended;
        const checked = await run('check', 'codex', '--json');
        assert.equal(checked.exitCode, 0, checked.stderr);
        const { agent, problems, modelCalls } = JSON.parse(checked.stdout) as AgentCheck;
        assert.deepEqual(
          { agent, problems, modelCalls },
          { agent: 'codex', problems: [], modelCalls: 2 },
        );
        const listed = await run('ls');
        assert.match(
          listed.stdout,
          /^codex +0\.171\.0 +OpenAI Responses +@openai\/codex@0\.171\.0$/m,
        );
        assert.match(listed.stdout, /^goose .*refused: /m);
        const refused = await run('check', 'nop');
        assert.deepEqual([refused.exitCode, refused.stdout], [2, '']);
        assert.match(refused.stderr, /nop has no program to be checked/);
      } finally {
        await rm(stateDir, { recursive: true, force: true });
      }
    });
    for (const subject of cliSubjects.filter(({ onlyProven }) => onlyProven !== true)) {
      // What speaks the upstream's own dialect is passed on as it comes: nothing of ours keeps it awake.
      const isTranslated = subject.path !== '/v1/chat/completions';
      if (isTranslated)
        test(`${subject.agent}: a rollout of a server`, async () => {
          await rollOutOnce(subject.agent);
        });
      const silent = isTranslated ? [silentCase(20_000)] : [];
      for (const one of [...(turn === undefined ? [] : [turn]), ...silent])
        test(`${subject.agent}: ${one.name}`, async () => {
          await runCase(one, subject);
        });
    }
  },
);
