import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { readMilesSamples } from '../../../src/collector/plugins/miles-samples.ts';
import { MilesSessions } from '../../../src/collector/plugins/miles-sessions.ts';
import { never } from '../../../src/core/linked-abort.ts';
import { milesContainer, type MilesSample } from '../../../src/wire/samples/miles-container.ts';

const sample: MilesSample = {
  ...{ tokens: Int32Array.of(1, 2, 3, 4, 151_643), lossMask: Uint8Array.of(1, 0, 1) },
  ...{ logprobs: Float64Array.of(-0.1, -0, -1e-300), routedExperts: null, indexerTopk: null },
  ...{ response: 'x', responseLength: 3, status: 'completed', weightVersions: ['7', '8'] },
  ...{ cachedTokens: 0, promptTokens: 2, metadata: {} },
};
const payload = (...samples: readonly MilesSample[]): Buffer =>
  milesContainer({
    ...{ samples, sessionMetadata: {} },
    emptyReason: samples.length === 0 ? 'no_records' : null,
  });

describe('the payload of samples', () => {
  it('is read number for number, with a version for each span', () => {
    const { samples, wasAborted } = readMilesSamples(payload(sample));
    assert.equal(wasAborted, false);
    assert.deepEqual(samples, [
      {
        ...{ tokens: [1, 2, 3, 4, 151_643], promptLength: 2, lossMask: [1, 0, 1], weight: 1 },
        ...{ logprobs: [-0.1, -0, -1e-300], isTruncated: false },
        spans: [
          { begin: 2, end: 3, isTrained: true, weightVersion: '7' },
          { begin: 4, end: 5, isTrained: true, weightVersion: '8' },
        ],
      },
    ]);
  });

  it('names no version where it cannot be told whose it is', () => {
    const versions = (...weightVersions: readonly string[]) =>
      readMilesSamples(payload({ ...sample, weightVersions })).samples[0]?.spans.map(
        ({ weightVersion }) => weightVersion,
      );
    assert.deepEqual(versions('7', '7', '7'), ['7', '7']);
    assert.deepEqual(versions('7', '7', '8'), [null, null]);
    assert.deepEqual(versions(), [null, null]);
  });

  it('shares the weight of a rollout, and tells what was cut off', () => {
    const read = readMilesSamples(payload(sample, { ...sample, status: 'aborted' }));
    assert.deepEqual(
      read.samples.map(({ weight }) => weight),
      [0.5, 0.5],
    );
    assert.equal(read.wasAborted, true);
    assert.deepEqual(readMilesSamples(payload()), { samples: [], wasAborted: false });
  });

  it('is refused when it is cut short', () => {
    const whole = payload(sample);
    for (const end of [4, 60, whole.length - 1])
      assert.throws(() => readMilesSamples(whole.subarray(0, end)));
  });
});

describe('sessions at several servers', () => {
  it('are opened where chance says, collected and deleted, and name their instance', async () => {
    const log: string[] = [];
    const send = ((url: string, { method }: RequestInit) => {
      log.push(`${method ?? 'GET'} ${url}`);
      if (url.endsWith('/health'))
        return Promise.resolve(Response.json({ session_server_instance_id: `i${url[8]}` }));
      if (url.endsWith('/samples'))
        return Promise.resolve(new Response(new Uint8Array(payload(sample))));
      return Promise.resolve(
        method === 'DELETE'
          ? new Response(null, { status: 204 })
          : Response.json({ session_id: 's1' }),
      );
    }) as typeof fetch;
    const sessions = new MilesSessions({
      ...{ urls: ['http://a:1/', ' http://b:2\n'], key: null, maxSeqLen: 64, fetch: send },
      random: () => 0.7,
    });
    const session = await sessions.open(never);
    assert.equal(session.baseUrl, 'http://b:2/sessions/s1/v1');
    assert.deepEqual(session.name.serverId, 'b:2');
    assert.equal((await session.collect(never)).samples.length, 1);
    await session.close();
    assert.deepEqual(log, [
      'GET http://b:2/health',
      'POST http://b:2/sessions',
      'POST http://b:2/sessions/s1/samples',
      'DELETE http://b:2/sessions/s1',
    ]);
    assert.equal((await sessions.instanceIds(never)).length, 2);
  });
});
