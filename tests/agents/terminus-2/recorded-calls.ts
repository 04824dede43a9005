/** What trajectories say about the calls of a model, in every document of a run. */
import assert from 'node:assert/strict';
import type { AtifStep, AtifTrajectory } from '../../../src/wire/atif/atif.ts';
import type { LoopRun } from './loop-bench.ts';

export function callSteps(
  documents: Readonly<Record<string, AtifTrajectory>>,
): readonly AtifStep[] {
  return Object.values(documents)
    .flatMap(({ steps }) => steps)
    .filter(({ source, llm_call_count: calls }) => source === 'agent' && calls === 1);
}

/** Every answered call is one step of one document, with its numbers and no others. */
export function assertEveryCallRecorded({ engine, documents }: LoopRun): void {
  const steps = callSteps(documents);
  const byRequest = new Map(steps.map((step) => [step.metrics?.extra?.['request_id'], step]));
  assert.equal(byRequest.size, steps.length, 'a call stands in two steps');
  const answered = engine.calls.flatMap(({ result }) =>
    result === null || result.finishReason === 'abort' ? [] : [result],
  );
  assert.equal(steps.length, answered.length);
  for (const result of answered) {
    const metrics = byRequest.get(result.requestId)?.metrics ?? {};
    assert.deepEqual(metrics.prompt_token_ids, result.promptIds);
    assert.deepEqual(metrics.completion_token_ids, result.outputIds);
    assert.deepEqual(metrics.logprobs, result.logprobs);
  }
}
