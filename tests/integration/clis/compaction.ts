/** Trials whose agent has to compact its history, by the program's own setting; and what must be true of the samples of their calls. */
import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { capturedCallsName } from '../../../src/gateway/capture/file-capture.ts';
import { readCalls, type ReadCall } from '../../../src/gateway/capture/read-calls.ts';
import {
  sampleLineSchema,
  samplesHeadSchema,
  type SampleCall,
  type SampleLine,
} from '../../../src/wire/samples/sample-lines.ts';
import { startSlipway } from '../../support/slipway-cli.ts';
import { runCli, type CliOutcome, type CliTrial } from './cli-bench.ts';

const solve = { shell: 'echo yes > /app/answer && cat /app/answer' };
const done = { say: 'All is done.' };
/** More than what is left below the size from which it compacts. */
const fill = { shell: 'seq 1 3000' };
const more = { shell: 'echo more' };

/** `asked`: words of the request for a summary; `rest`: what there is to do behind it. */
const filling = (asked: string, rest: readonly unknown[]): readonly unknown[] => {
  const script = `\`\`\`script\n${JSON.stringify(rest)}\n\`\`\``;
  const summary = `<summary>\nThe numbers are counted, the answer is still to be written. The script goes on:\n${script}\n</summary>`;
  return [fill, more, { asked, summary }];
};

export interface Compaction {
  readonly trial: CliTrial;
  /** What its own log says of it. */
  readonly logged: RegExp;
}

export const compactions: readonly Compaction[] = [
  {
    trial: {
      agent: 'codex',
      script: filling('a handoff summary for another', [solve, done]),
      kwargs: { model_auto_compact_token_limit: 15_000 },
    },
    logged: /"type":"compacted"/,
  },
  {
    trial: {
      agent: 'claude-code',
      // It keeps the last turn as it was, behind the summary.
      script: filling('create a detailed summary', [more, solve, done]),
      env: { CLAUDE_CODE_AUTO_COMPACT_WINDOW: '100000', CLAUDE_AUTOCOMPACT_PCT_OVERRIDE: '22' },
    },
    logged: /"subtype":"compact_boundary"/,
  },
];

export interface CompactedSamples {
  readonly calls: readonly SampleCall[];
  readonly samples: readonly SampleLine[];
  readonly captured: readonly ReadCall[];
  readonly audited: string;
}

export async function runCompaction({ trial, logged }: Compaction): Promise<CompactedSamples> {
  const outcome = await runCli(trial);
  assert.equal(outcome.result.exception_info, null);
  assert.deepEqual(outcome.result.verifier_result, { rewards: { reward: 1 } });
  const logs = [...outcome.files].filter(([name]) => name.startsWith('agent/'));
  assert.ok(
    logs.some(([, text]) => logged.test(text)),
    'its own log tells of the compaction',
  );
  const made = await samplesOf(outcome);
  judge(made, outcome);
  return made;
}

/** By the commands that anybody would use. */
async function samplesOf({ files }: CliOutcome): Promise<CompactedSamples> {
  const stateDir = await mkdtemp(path.join(os.tmpdir(), 'slipway-compaction-'));
  try {
    const capture = path.join(stateDir, capturedCallsName);
    const file = path.join(stateDir, 'samples.ndjson');
    await writeFile(capture, files.get(capturedCallsName) ?? '');
    const slipway = async (...args: readonly string[]): Promise<string> => {
      const { exitCode, stdout, stderr } = await startSlipway(['sessions', ...args], { stateDir })
        .ended;
      assert.equal(exitCode, 0, stderr);
      return stdout;
    };
    const lines = await slipway('samples', capture, '--reward', '1');
    await writeFile(file, lines);
    const [head, ...rest] = lines.trimEnd().split('\n');
    const captured: ReadCall[] = [];
    for await (const call of readCalls(capture)) captured.push(call);
    return {
      calls: samplesHeadSchema.parse(JSON.parse(head ?? '')).calls,
      samples: rest.slice(0, -1).map((line) => sampleLineSchema.parse(JSON.parse(line))),
      captured,
      audited: (await slipway('audit', file)).trim(),
    };
  } finally {
    await rm(stateDir, { recursive: true, force: true });
  }
}

/** Every call that the engine answered is there with its ids, and every turn is trained once. */
function judge({ calls, samples, captured }: CompactedSamples, { engineLog }: CliOutcome): void {
  assert.equal(captured.length, engineLog.length, 'calls of the engine');
  for (const { answer } of captured) {
    const { prompt_token_ids: prompt, completion_token_ids: sampled } = answer?.metrics ?? {};
    assert.ok(
      engineLog.some((one) =>
        isDeepStrictEqual([one.prompt_ids, one.output_ids], [prompt, sampled]),
      ),
      'ids as the engine has them',
    );
  }
  assert.equal(calls.length, captured.length, 'calls with ids');
  const trained = samples.flatMap((sample) => sample.calls.filter((call) => call.trained));
  const turns = calls.filter(({ label }) => label !== 'side-call');
  assert.deepEqual(
    trained.map(({ call }) => call).sort(),
    turns.map(({ call }) => call).sort(),
    'each turn in one sample',
  );
  for (const { tokens, prompt_length: begin, loss_mask: mask, calls: spans } of samples)
    for (const { call, output, end, trained: isTrained } of spans) {
      const { answer } = captured.find((one) => one.call === call) ?? {};
      const { prompt_token_ids: prompt, completion_token_ids: sampled } = answer?.metrics ?? {};
      assert.deepEqual(tokens.slice(0, output), prompt, 'what the engine saw');
      assert.deepEqual(tokens.slice(output, end), sampled, 'what it sampled');
      assert.ok(mask.slice(output - begin, end - begin).every((one) => one === Number(isTrained)));
    }
  const ones = samples.reduce((sum, { loss_mask: mask }) => sum + mask.filter(Boolean).length, 0);
  assert.equal(
    ones,
    turns.reduce((sum, { output_tokens: count }) => sum + count, 0),
  );
  const weight = samples.reduce((sum, sample) => sum + sample.weight, 0);
  assert.ok(Math.abs(weight - 1) < 1e-12, `weights of ${weight}`);
  const asked = calls.filter(({ purpose }) => purpose === 'summary').map(({ call }) => call);
  const edges = calls.map(({ label, reason, from }) => ({ label, reason, from }));
  assert.equal(asked.length, 1, 'one summary');
  assert.deepEqual(
    edges.filter(({ label }) => label !== 'append'),
    [
      { label: 'opening', reason: null, from: null },
      { label: 'side-call', reason: 'summary', from: null },
      { label: 'compaction', reason: 'summarised', from: asked[0] },
    ],
  );
}
