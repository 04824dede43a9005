import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import { auditSamples } from '../../../src/app/audit-samples.ts';
import { capturedSamples } from '../../../src/app/captured-samples.ts';
import { isRolloutError } from '../../../src/core/errors.ts';
import { systemClock } from '../../../src/core/clock.ts';
import { silentLogger } from '../../../src/core/logger.ts';
import type { ModelResult } from '../../../src/engines/model-call.ts';
import { FileCapture } from '../../../src/gateway/capture/file-capture.ts';
import type { SampleLine, SamplesHead } from '../../../src/wire/samples/sample-lines.ts';
import { syntheticRollout } from '../../sessions/synthetic-rollouts.ts';
import { knownLeaves, type KnownCall } from '../../sessions/synthetic-agent.ts';

const options = { reward: 1, maxTokens: null, trainsSummaries: false, keepsRetries: false };

/** Captures calls as the gateway does; of those that `hides` names the engine tells no ids. */
async function captureOf(
  dir: string,
  calls: readonly KnownCall[],
  hides: (call: number) => boolean = () => false,
): Promise<string> {
  const capture = new FileCapture({ dir, clock: systemClock, logger: silentLogger });
  const route = capture.open('r-7', []);
  for (const { given } of calls) {
    const record = route.begin();
    const isHidden = hides(given.call);
    record.sent({
      ...{ dialect: 'chat', isStreaming: false, client: given.client, purpose: given.purpose },
      body: { model: 'm', messages: given.messages },
    });
    const result: ModelResult = {
      ...{ requestId: 'x', text: given.answer.text, reasoning: null, finishReason: 'stop' },
      toolCalls: given.answer.toolArguments.map((text, at) => ({
        ...{ id: `${given.call}-${at}`, name: 'work', arguments: text },
      })),
      ...{ stopString: null, weightVersion: given.weightVersion, usage: null, model: 'm' },
      promptIds: isHidden ? null : [...given.promptIds],
      outputIds: isHidden ? null : [...given.outputIds],
      ...{ logprobs: isHidden ? null : [...(given.logprobs ?? [])], extra: {} },
    };
    record.part({ type: 'end', result });
    record.ended({
      ...{ end: 'complete', status: 200, problem: null, isDelivered: true },
      ...{ firstByteMs: null, durationMs: 0 },
    });
  }
  await route.close();
  const file = await capture.fileOf('r-7');
  assert.ok(file !== null);
  return file;
}

async function inFolder(work: (dir: string) => Promise<void>): Promise<void> {
  const dir = mkdtempSync(path.join(os.tmpdir(), 'slipway-captured-'));
  try {
    await work(dir);
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

test('captured calls of an agent become its samples, token for token, and the audit passes', () =>
  inFolder(async (dir) => {
    // Calls that ran side by side are captured in the order in which they ended.
    const { calls } = syntheticRollout(11, 16);
    const lines = [...(await capturedSamples(await captureOf(dir, calls), options))];
    const samples = lines.slice(1, -1).map((line) => JSON.parse(line) as SampleLine);
    const leaves = knownLeaves(calls).filter(({ trained }) => trained.size > 0);
    assert.deepEqual(
      samples.map(({ tokens }) => tokens),
      leaves.map(({ call: { given } }) => [...given.promptIds, ...given.outputIds]),
    );
    assert.ok(samples.every(({ reward }) => reward === 1));
    const file = path.join(dir, 'samples.ndjson');
    writeFileSync(file, lines.join(''));
    const audited = await auditSamples(file, AbortSignal.timeout(60_000));
    assert.equal(audited.rolloutId, 'r-7');
    assert.equal(audited.samples, leaves.length);
  }));

test('a call of which the engine told no ids is counted and in no sample', () =>
  inFolder(async (dir) => {
    const { calls } = syntheticRollout(1, 0);
    const file = await captureOf(dir, calls, () => true);
    const [head, ...rest] = [...(await capturedSamples(file, options))];
    const { calls_without_ids: without, calls: known } = JSON.parse(head ?? '') as SamplesHead;
    assert.deepEqual([without, known.length, rest.length], [calls.length, 0, 1]);
  }));

test('a file that is no capture is refused', () =>
  inFolder(async (dir) => {
    const file = path.join(dir, 'other.ndjson');
    writeFileSync(file, '{}\n');
    for (const name of [file, path.join(dir, 'none')])
      await assert.rejects(
        () => capturedSamples(name, options),
        (error) => isRolloutError(error, 'TRAJECTORY_INVALID'),
      );
  }));
