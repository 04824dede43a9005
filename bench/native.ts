/**
 * `npm run bench -- native`: rollouts per minute through the server, with the oracle and with terminus-2 on the mock engine, and what the server's path
 * costs over `slipway run` of the same trials, in real sandboxes. Both ways are timed from the start of the first trial to the end of the last, the
 * server's from the first request to the last callback. Rounds are interleaved, figures are medians.
 * `AGENTS=oracle,terminus-2`, `CONCURRENCY=8,32,64` and `ROUNDS=3` choose.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { ListeningProcess } from './server/processes.ts';
import { root, slipway, type Batch } from './native/batch.ts';
import { runSeconds } from './native/run.ts';
import { servedSeconds } from './native/served.ts';
import { report, reportWhenLate, type Figure, type Goal } from './report.ts';
import { interleaved, median } from './samples.ts';
import { sized } from './size.ts';

const agents = (process.env['AGENTS'] ?? 'oracle,terminus-2').split(',') as Batch['agent'][];
const concurrencies = (process.env['CONCURRENCY'] ?? sized('8,32,64', '8')).split(',').map(Number);
const rounds = Number(process.env['ROUNDS'] ?? sized('3', '1'));
const figures: Figure[] = [];
const goals: Goal[] = [];
reportWhenLate('native', () => ({ figures, goals }));

const dir = await mkdtemp(path.join(os.tmpdir(), 'slipway-bench-'));
process.env['SLIPWAY_STATE_DIR'] = path.join(dir, 'state');
let folders = 0;
const newPath = (): string => path.join(dir, `bench-${(folders += 1)}`);

async function measure(agent: Batch['agent'], concurrency: number, modelUrl: string) {
  const taskDir = path.join(root, 'tasks/file-answer');
  // Several waves: what a process does only once is no part of a rate.
  const count = Math.max(sized(64, 24), sized(4, 3) * concurrency);
  const batch: Batch = { agent, count, concurrency, taskDir, modelUrl };
  const seconds = await interleaved(rounds, {
    run: () => runSeconds(batch, newPath()),
    served: () => servedSeconds(batch, newPath()),
  });
  const [run, served] = [median(seconds.run), median(seconds.served)];
  const name = `${agent}, ${concurrency} at once`;
  console.log(`${name}: ${count} trials in ${run.toFixed(1)} s, served ${served.toFixed(1)} s`);
  figures.push(
    { name: `${name}: served`, value: (60 * count) / served, unit: 'rollouts/min' },
    { name: `${name}: slipway run`, value: (60 * count) / run, unit: 'trials/min' },
    {
      name: `${name}: overhead per rollout`,
      value: (1_000 * (served - run)) / count,
      unit: 'ms',
    },
  );
  goals.push({
    ...{ name: `${name}: served over slipway run`, measured: served / run },
    ...{ limit: 1.1, direction: 'at most', unit: '×' },
  });
}

let isMeasured = false;
try {
  await using engine = await ListeningProcess.start([
    ...[slipway, 'engine', '--port', '0', '--json'],
    ...['--policy', path.join(root, 'examples/policies/terminus-quickstart.js')],
  ]);
  const modelUrl = `${engine.url}/v1`;
  // Images and folders are there before anything is timed.
  await runSeconds(
    {
      ...{ agent: 'oracle', count: 2, concurrency: 2, modelUrl },
      taskDir: path.join(root, 'tasks/file-answer'),
    },
    newPath(),
  );
  for (const agent of agents)
    for (const concurrency of concurrencies) await measure(agent, concurrency, modelUrl);
  isMeasured = true;
} finally {
  // Of a batch that broke off its log says why, and its sandboxes may still be there.
  if (isMeasured) await rm(dir, { recursive: true, force: true });
  else console.log(`kept: ${dir}`);
}
report('native', { figures, goals });
