import assert from 'node:assert/strict';
import { test } from 'node:test';
import { exactJson } from '../../src/core/exact-json.ts';
import { isRolloutError } from '../../src/core/errors.ts';
import { assembleSamples } from '../../src/sessions/samples/assemble.ts';
import { SamplesAudit, type AuditedSamples } from '../../src/sessions/samples/audit.ts';
import { sampleLines } from '../../src/sessions/samples/sample-lines.ts';
import { TokenForest } from '../../src/sessions/token-forest.ts';
import type { SampleLine, SamplesHead } from '../../src/wire/samples/sample-lines.ts';
import { syntheticRollout } from './synthetic-rollouts.ts';

const rollout = { rolloutId: 'r-1', reward: 0.5, callsWithoutIds: 0 };

function exported(seed: number, maxTokens: number | null = null): string[] {
  const forest = new TokenForest({ budget: null });
  for (const { given } of syntheticRollout(seed, 20).calls) forest.add(given);
  return [...sampleLines(forest, assembleSamples(forest, { maxTokens }), rollout)];
}

function audit(lines: readonly string[]): AuditedSamples {
  const checked = new SamplesAudit('samples.ndjson');
  for (const line of lines) checked.line(Buffer.from(line));
  return checked.end();
}

function refusal(lines: readonly string[]): string {
  try {
    audit(lines);
  } catch (error) {
    assert.ok(isRolloutError(error, 'SAMPLES_INVALID'), String(error));
    return error.message;
  }
  return 'nothing is wrong';
}

/** The line with its document changed in place. */
function changed(line: string | undefined, change: (document: object) => unknown): string {
  const document = JSON.parse(line ?? '') as object;
  change(document);
  return `${exactJson(document)}\n`;
}

function changedSample(line: string | undefined, change: (sample: SampleLine) => unknown): string {
  return changed(line, (document) => change(document as SampleLine));
}

function changedHead(line: string | undefined, change: (head: SamplesHead) => unknown): string {
  return changed(line, (document) => change(document as SamplesHead));
}

test('samples of agents that do everything pass from their lines alone, whole and cut', () => {
  for (const maxTokens of [null, 60])
    for (let seed = 1; seed <= 10; seed += 1) {
      const lines = exported(seed, maxTokens);
      const { samples, checkedCalls, trainedTokens } = audit(lines);
      assert.equal(samples, lines.length - 2);
      assert.ok(checkedCalls > 0 && trainedTokens > 0);
    }
});

test('every single flipped id, log-probability and mask is found', () => {
  const lines = exported(3);
  assert.equal(
    changed(lines[1], () => undefined),
    lines[1],
  );
  let flips = 0;
  for (const [at, line] of lines.slice(1, -1).entries()) {
    const { tokens, loss_mask: mask } = JSON.parse(line) as SampleLine;
    const flip = (change: (sample: SampleLine) => void): void => {
      flips += 1;
      const broken = lines.with(at + 1, changedSample(line, change));
      assert.match(refusal(broken), /^line \d+: (call|the mask|a token)/);
    };
    for (let index = 0; index < tokens.length; index += 5)
      flip((sample) => (sample.tokens[index] = (tokens[index] ?? 0) ^ 1));
    for (let index = 0; index < mask.length; index += 9) {
      flip((sample) => (sample.loss_mask[index] = mask[index] === 1 ? 0 : 1));
      flip((sample) => {
        if (sample.log_probs !== null) sample.log_probs[index] = -9;
      });
    }
  }
  assert.ok(flips > 100);
});

const breaks: readonly {
  readonly title: string;
  readonly break: (lines: string[]) => string[];
  readonly says: RegExp;
}[] = [
  { title: 'no end', break: (lines) => lines.slice(0, -1), says: /its end is missing/ },
  { title: 'a sample less', break: (lines) => lines.toSpliced(1, 1), says: /not in order|missing/ },
  {
    title: 'a call less in the head',
    break: (lines) =>
      lines.with(
        0,
        changedHead(lines[0], (head) => head.calls.pop()),
      ),
    says: /do not make the chain/,
  },
  {
    title: 'two calls in another order',
    break: (lines) =>
      lines.with(
        0,
        changedHead(lines[0], ({ calls }) => calls.push(...calls.splice(-2, 1))),
      ),
    says: /do not make the chain|is not before it/,
  },
  {
    title: 'another weight version',
    break: (lines) =>
      lines.with(
        1,
        changedSample(lines[1], ({ calls }) => {
          for (const call of calls) call.weight_version = 'v9';
        }),
      ),
    says: /is not what the engine was given and sampled/,
  },
  {
    title: 'a call that is trained twice',
    break: (lines) =>
      lines.toSpliced(
        2,
        0,
        changedSample(lines[1], (sample) => (sample.sample = 1)),
      ),
    says: /is trained in sample 0 already/,
  },
  {
    title: 'another reward',
    break: (lines) =>
      lines.with(
        1,
        changedSample(lines[1], (sample) => (sample.reward = 1)),
      ),
    says: /not as it was written/,
  },
  { title: 'text that is no JSON', break: (lines) => lines.with(1, '{\n'), says: /not JSON/ },
  {
    title: 'a field that nobody knows',
    break: (lines) =>
      lines.with(
        1,
        changed(lines[1], (sample) => Object.assign(sample, { extra: 1 })),
      ),
    says: /Unrecognized key/,
  },
];

for (const { title, break: make, says } of breaks)
  test(`${title} is refused`, () => {
    assert.match(refusal(make(exported(5))), says);
  });
