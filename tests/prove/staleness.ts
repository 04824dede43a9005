/**
 * Must show: a new version of the weights every 5 s, some of them falling into generations that run and some failing; limits of 0, 1 and 4 versions. Every span has the version of
 * the engine's log, nothing beyond the limit is handed over. Agents live through a pause of a minute. The asynchronous driver is faster than the synchronous
 * one on the same long tail, and the synchronous one gives the same batches by the same seed.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import {
  runPause,
  runStaleness,
  runSynchronous,
  runTail,
  staleEngineFlags,
  staleServeFlags,
  type Place,
} from '../collector/staleness-run.ts';
import { startEngineProcess } from '../support/engine-process.ts';
import { startServeProcess } from '../support/serve-process.ts';

const seed = Number(process.env['SEED'] ?? '3');
const pauseMs = 1_000 * Number(process.env['PAUSE_SEC'] ?? '60');
const everyMs = 1_000 * Number(process.env['EVERY_SEC'] ?? '5');
const leastRatio = 1.4;
const problems: string[] = [];

const root = mkdtempSync(path.join(os.tmpdir(), 'slipway-staleness-'));
try {
  for (const limit of [0, 1, 4])
    await at(`limit${limit}`, 'constant:50', async (place) => {
      const result = await runStaleness(
        {
          ...{ limit, everyMs, updates: 6, groupSize: 4, batchGroups: 4, startGroups: 12 },
          ...{ runName: `limit${limit}`, capMs: 4_000 },
        },
        place,
      );
      const { groups, spans, behind, staleGroups, mixedCalls, failedUpdates, version } = result;
      console.log(
        `limit ${limit}: ${version} versions, ${failedUpdates} updates failed; ${groups} groups handed over, by versions behind ${JSON.stringify(behind)}; ` +
          `${spans} spans as in the engine's log, ${mixedCalls} of them with an update inside; ${staleGroups} stale groups`,
      );
      problems.push(...result.problems, ...result.failures);
      if (groups === 0) problems.push(`limit ${limit}: nothing was handed over`);
      if (mixedCalls === 0 && limit > 0)
        problems.push(`limit ${limit}: no update fell into a call`);
    });
  await at('pause', 'constant:50', async (place) => {
    const { held, groups, failures } = await runPause(
      { pauseMs, runName: 'pause', capMs: 4_000 },
      place,
    );
    console.log(
      `a pause of ${pauseMs / 1_000} s: ${held} calls were held, ${failures.length} rollouts failed, ${groups} groups handed over`,
    );
    problems.push(...failures);
    if (held === 0 || groups === 0) problems.push('the pause caught nothing');
  });
  await at('tail', 'constant:4', async (place) => {
    const size = { batches: 8, trainMs: 1_500, seed };
    const tookMs: Record<string, number> = {};
    for (const mode of ['synchronous', 'asynchronous'] as const)
      tookMs[mode] = await runTail({ ...size, mode, runName: mode }, place);
    const { synchronous = 0, asynchronous = 1 } = tookMs;
    const ratio = synchronous / asynchronous;
    console.log(
      `${size.batches} batches with a long tail: synchronous ${(synchronous / 1_000).toFixed(1)} s, asynchronous ${(asynchronous / 1_000).toFixed(1)} s, ratio ${ratio.toFixed(2)}`,
    );
    if (ratio < leastRatio) problems.push(`the ratio is ${ratio.toFixed(2)}, not ${leastRatio}`);
  });
  const batches: (readonly unknown[])[] = [];
  for (const runName of ['first', 'second'])
    await at(runName, 'constant:4', async (place) => {
      batches.push(await runSynchronous({ seed, runName }, place));
    });
  const isSame = isDeepStrictEqual(batches[0], batches[1]);
  console.log(`two synchronous runs by one seed, token for token: ${isSame ? 'equal' : 'differ'}`);
  if (!isSame) problems.push('two synchronous runs by one seed differ');
} finally {
  rmSync(root, { recursive: true, force: true });
}
for (const problem of problems.slice(0, 20)) console.log(`PROBLEM ${problem}`);
console.log(
  problems.length > 0 ? 'FAILED' : 'fresh enough, as the engine says, and no agent failed',
);
if (problems.length > 0) process.exitCode = 1;

/** With a server and an engine of its own. */
async function at(
  name: string,
  tokenLatency: string,
  work: (place: Place) => Promise<void>,
): Promise<void> {
  const stateDir = path.join(root, name);
  const engineLog = path.join(root, `${name}.ndjson`);
  const flags = ['--log', engineLog, '--token-latency', tokenLatency, '--seed', String(seed)];
  await using engine = await startEngineProcess([...staleEngineFlags, ...flags]);
  await using server = await startServeProcess(staleServeFlags, { stateDir, cwd: root });
  await work({ serverUrl: server.url, engineUrl: engine.url, engineLog });
}
