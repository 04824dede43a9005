import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { describe, it } from 'node:test';
import { systemClock } from '../../../src/core/clock.ts';
import { silentLogger } from '../../../src/core/logger.ts';
import type { ModelResult } from '../../../src/engines/model-call.ts';
import { FileCapture } from '../../../src/gateway/capture/file-capture.ts';
import { assembleFile } from '../../../src/gateway/samples/assemble-file.ts';
import { milesPayloadOf } from '../../../src/gateway/samples/miles-payload.ts';
import type { SamplesTask } from '../../../src/gateway/samples/sample-maker.ts';
import { SamplesThread } from '../../../src/gateway/samples/samples-thread.ts';
import type { SampleRules } from '../../../src/wire/rollout/train-rules.ts';
import type { SampleLine } from '../../../src/wire/samples/sample-lines.ts';
import { ManualClock } from '../../fakes/manual-clock.ts';
import { until } from '../../support/until.ts';

const rules: SampleRules = {
  ...{ trainsSummaries: false, picker: 'drop_retries', maxTokens: null },
  ...{ routedExperts: false, indexerTopk: false },
};

interface Asked {
  readonly prompt: readonly number[];
  readonly sampled: readonly number[];
  readonly extra?: Readonly<Record<string, unknown>>;
}

const base64 = (values: readonly number[]): string =>
  Buffer.from(Int32Array.from(values).buffer).toString('base64');
/** For each token but the last: two layers of two. */
const routed = (tokens: number): readonly number[] =>
  Array.from({ length: (tokens - 1) * 4 }, (_, at) => 1000 * tokens + at);

const two: readonly Asked[] = [
  { prompt: [1, 2], sampled: [3, 4], extra: { meta_info: { routed_experts: base64(routed(4)) } } },
  {
    ...{ prompt: [1, 2, 3, 4, 5], sampled: [6, 7] },
    extra: { meta_info: { routed_experts: base64(routed(7)) } },
  },
];

class Kept implements Disposable {
  readonly #dir = mkdtempSync(path.join(os.tmpdir(), 'slipway-assemble-'));

  /** Captures calls as the gateway does. */
  async capture(calls: readonly Asked[], { isWhole = true } = {}): Promise<string> {
    const capture = new FileCapture({ dir: this.#dir, clock: systemClock, logger: silentLogger });
    const route = capture.open('r', []);
    for (const { prompt, sampled, extra = {} } of calls) {
      const record = route.begin();
      record.sent({ dialect: 'chat', isStreaming: false, client: null, body: { messages: [] } });
      const result: ModelResult = {
        ...{ requestId: 'x', text: '', reasoning: null, toolCalls: [], finishReason: 'stop' },
        ...{ stopString: null, weightVersion: '3', usage: null, model: 'm', extra },
        ...{ promptIds: prompt, outputIds: sampled, logprobs: sampled.map((id) => -id / 3) },
      };
      record.part({ type: 'end', result });
      record.ended({
        ...{ end: 'complete', status: 200, problem: null, isDelivered: true },
        ...{ firstByteMs: null, durationMs: 0 },
      });
    }
    if (!isWhole) route.begin().sent({ dialect: 'chat', isStreaming: false, client: null, body: {} }); // prettier-ignore
    await route.close();
    return (await capture.fileOf('r')) ?? '';
  }

  task(captured: string, more: Partial<SamplesTask> = {}): SamplesTask {
    return { rolloutId: 'r', captured, agentCalls: null, reward: null, rules, ...more };
  }

  [Symbol.dispose](): void {
    rmSync(this.#dir, { recursive: true, force: true });
  }
}

function samplesIn(file: string | null): readonly SampleLine[] {
  const lines = readFileSync(file ?? '', 'utf8').split('\n');
  return lines.slice(1, -2).map((line) => JSON.parse(line) as SampleLine);
}

type MilesHeader = Readonly<
  Record<
    string,
    | {
        readonly shape: readonly number[];
        readonly data_offsets: readonly [number, number];
      }
    | undefined
  >
>;

/** Shape and values of a tensor of 32-bit integers; null = there is none. */
function tensorIn(payload: Uint8Array, name: string) {
  const bytes = Buffer.from(payload);
  const begin = 8 + Number(bytes.readBigUInt64LE());
  const header = JSON.parse(bytes.subarray(8, begin).toString()) as MilesHeader;
  const { shape, data_offsets: offsets } = header[name] ?? {};
  if (shape === undefined || offsets === undefined) return null;
  const data = bytes.subarray(begin + offsets[0], begin + offsets[1]);
  return { shape, values: Array.from({ length: data.length / 4 }, (_, at) => data.readInt32LE(4 * at)) }; // prettier-ignore
}

describe('captured calls', () => {
  it('of a grader are in no sample', async () => {
    using kept = new Kept();
    const captured = await kept.capture(two);
    const whole = await assembleFile(kept.task(captured, { reward: 0.5 }));
    assert.deepEqual([whole.samples.trainedTokens, whole.samples.calls], [4, 2]);
    assert.equal(samplesIn(whole.file)[0]?.reward, 0.5);
    const own = await assembleFile(kept.task(captured, { agentCalls: 1 }));
    assert.deepEqual(samplesIn(own.file)[0]?.tokens, [1, 2, 3, 4]);
    assert.equal(own.samples.calls, 1);
  });

  it('of which some are missing make none, and so do those that nobody trains', async () => {
    using kept = new Kept();
    const cut = await assembleFile(kept.task(await kept.capture(two, { isWhole: false })));
    assert.deepEqual([cut.samples.notTrainable?.reason, cut.file], ['calls-missing', null]);
    const silent = await kept.capture([{ prompt: [1, 2], sampled: [] }]);
    const nothing = await assembleFile(kept.task(silent));
    assert.equal(nothing.samples.notTrainable?.reason, 'nothing-sampled');
    const short = kept.task(await kept.capture(two), { rules: { ...rules, maxTokens: 2 } });
    assert.match((await assembleFile(short)).samples.notTrainable?.message ?? '', /max_tokens, 2$/);
    const lost = await assembleFile(kept.task('/nowhere'));
    assert.equal(lost.samples.notTrainable?.reason, 'not-made');
  });

  it('bring what the engine said for a trainer’s replay through untouched, and as a tensor where its form is known', async () => {
    using kept = new Kept();
    const { file } = await assembleFile(kept.task(await kept.capture(two)));
    assert.deepEqual(samplesIn(file)[0]?.replay, { routed_experts: base64(routed(7)) });
    const payload = await milesPayloadOf(file ?? '', 2);
    assert.deepEqual(tensorIn(payload, 'rollout_routed_experts.0'), {
      ...{ shape: [6, 2, 2], values: routed(7) },
    });
    assert.equal(
      tensorIn(await milesPayloadOf(file ?? '', null), 'rollout_routed_experts.0'),
      null,
    );
    assert.equal(tensorIn(await milesPayloadOf(file ?? '', 3), 'rollout_routed_experts.0'), null);
  });

  it('cut at a limit keep of it what their tokens have', async () => {
    using kept = new Kept();
    const cut = kept.task(await kept.capture(two), { rules: { ...rules, maxTokens: 6 } });
    const { file } = await assembleFile(cut);
    assert.deepEqual(samplesIn(file)[0]?.tokens, [1, 2, 3, 4, 5, 6]);
    const payload = await milesPayloadOf(file ?? '', 1);
    assert.deepEqual(tensorIn(payload, 'rollout_routed_experts.0'), {
      ...{ shape: [5, 1, 4], values: routed(7).slice(0, 20) },
    });
  });
});

describe('the thread of samples', { timeout: 60_000 }, () => {
  it('is there again for the next rollout, and for those that wait, when a picker has killed it', async () => {
    using kept = new Kept();
    const captured = await kept.capture(two);
    const thread = new SamplesThread(systemClock);
    try {
      const picker = `${path.join(import.meta.dirname, 'deadly-picker.ts')}:kill`;
      const deadly = thread.make(kept.task(captured, { rules: { ...rules, picker } }));
      const waiting = thread.make(kept.task(captured));
      assert.equal((await deadly).samples.notTrainable?.reason, 'not-made');
      assert.equal((await waiting).samples.count, 1);
      assert.equal((await thread.make(kept.task(captured))).samples.count, 1);
      const none = `${path.join(import.meta.dirname, 'deadly-picker.ts')}:nothing`;
      const unwanted = await thread.make(
        kept.task(captured, { rules: { ...rules, picker: none } }),
      );
      assert.equal(unwanted.samples.notTrainable?.reason, 'nothing-sampled');
    } finally {
      await thread.close();
    }
    assert.equal((await thread.make(kept.task(captured))).samples.notTrainable?.reason, 'not-made');
  });

  it('is given up when it does not come back, and the next rollout gets another', async () => {
    using kept = new Kept();
    const captured = await kept.capture(two);
    const clock = new ManualClock();
    const thread = new SamplesThread(clock);
    try {
      const picker = `${path.join(import.meta.dirname, 'deadly-picker.ts')}:stay`;
      const stuck = thread.make(kept.task(captured, { rules: { ...rules, picker } }));
      const waiting = thread.make(kept.task(captured));
      await until('it is at work', () => clock.pauses.length > 0);
      clock.advance(600_000);
      assert.match((await stuck).samples.notTrainable?.message ?? '', /longer than 10 minutes/);
      assert.equal((await waiting).samples.count, 1);
      assert.deepEqual(clock.pauses, []);
    } finally {
      await thread.close();
    }
  });
});
