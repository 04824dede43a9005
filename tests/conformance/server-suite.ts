/** What clients may rely on, however the service is started: admission, abort and death, over HTTP, against processes. */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { whyNoQueue, type QueueKind } from '../support/rollout-service.ts';
import { ServerBench, type ServerCase } from './server/bench.ts';
import { abortCases } from './server/cases/abort.ts';
import { admissionCases } from './server/cases/admission.ts';
import { deathCases } from './server/cases/death.ts';

export const serverCases: readonly ServerCase[] = [...admissionCases, ...abortCases, ...deathCases];

const isWhole = process.env['SLIPWAY_WHOLE_CONFORMANCE'] === '1';

export function serverSuite(queue: QueueKind): void {
  const options = { skip: whyNoQueue(queue), timeout: 300_000, concurrency: 1 };
  describe(`server conformance: ${queue}`, options, () => {
    let bench: ServerBench;
    before(async () => {
      bench = await ServerBench.open(queue);
    });
    after(() => bench[Symbol.asyncDispose]());
    for (const serverCase of serverCases) {
      const { id, title, queues = [queue], isLong = false } = serverCase;
      if (queues.includes(queue) && (isWhole || !isLong))
        it(`${id}: ${title}`, async () => {
          await serverCase.run(bench);
          await bench.clear();
          assert.deepEqual(await bench.errors(), []);
        });
    }
  });
}
