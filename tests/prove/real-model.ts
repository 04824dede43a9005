/**
 * Must show: real weights carry a terminus-2 trial to its verdict; every id and log-probability of its trajectory is the model's own. Controls: a
 * wrong id, and ids that are shifted by one, have other log-probabilities.
 */
import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { fetchSmallModel, smallModelFile } from '../../scripts/fetch-small-model.js';
import { provideLlama } from '../../scripts/setup/llama.js';
import { importLlama } from '../../src/engines/gguf/llama-library.ts';
import type { AtifTrajectory } from '../../src/wire/atif/atif.ts';
import { callSteps } from '../agents/terminus-2/recorded-calls.ts';
import { readEngineLog, startEngineProcess } from '../support/engine-process.ts';
import { GenerateClient } from '../support/generate-client.ts';
import {
  bundledTasksDir,
  repositoryDir,
  slipwayRun,
  startSlipway,
} from '../support/slipway-cli.ts';

const turns = Number(process.env['TURNS'] ?? '3');
const tokensPerTurn = Number(process.env['TOKENS'] ?? '64');
const sumTolerance = 1e-3;
const logprobTolerance = 1e-4;
/** Positions of each turn whose whole distribution is asked for. */
const shownPerTurn = 3;

let failures = 0;
function report(what: string, measured: string, isMet: boolean): void {
  if (!isMet) failures++;
  console.log(`${isMet ? 'met   ' : 'MISSED'} ${what}: ${measured}`);
}
const farthest = (a: readonly number[], b: readonly number[]): number =>
  Math.max(...a.map((value, index) => Math.abs(value - (b[index] ?? Number.NaN))));

console.log(`node-llama-cpp: ${await provideLlama()}`);
// Only now: it looks for the package when it is loaded.
await import('../support/cached-llama.js');
console.log(`weights: ${await fetchSmallModel()}`);
const root = await mkdtemp(path.join(os.tmpdir(), 'slipway-real-model-'));
try {
  const log = path.join(root, 'engine.ndjson');
  const hook = pathToFileURL(path.join(repositoryDir, 'tests/support/cached-llama.js')).href;
  await using engine = await startEngineProcess(
    ['--gguf', smallModelFile(), '--log', log, '--seed', '7'],
    { nodeArgs: ['--import', hook] },
  );
  const stateDir = path.join(root, 'state');
  const document = await slipwayRun(
    [
      ...[
        '--path',
        path.join(bundledTasksDir, 'file-answer'),
        '--jobs-dir',
        path.join(root, 'jobs'),
      ],
      ...['--agent', 'terminus-2', '--model', 'openai/smollm2', '--agent-timeout-multiplier', '20'],
      ...['--agent-kwarg', `api_base=${engine.apiBase}`, '--agent-kwarg', `max_turns=${turns}`],
      ...[
        '--agent-kwarg',
        'collect_rollout_details=true',
        '--agent-kwarg',
        'enable_summarize=false',
      ],
      ...['--agent-kwarg', `llm_call_kwargs={"max_tokens":${tokensPerTurn}}`],
    ],
    { stateDir, variables: { OPENAI_API_KEY: 'none' } },
  );
  const [trial] = document.trials;
  const reward = trial?.rewards?.['reward'];
  report('the trial ends with a verdict', `reward ${reward}`, typeof reward === 'number');
  report('nothing failed', trial?.failure?.code ?? 'no failure', trial?.failure === null);

  const file = path.join(document.job.dir, trial?.trial_name ?? '', 'agent/trajectory.json');
  const validation = await startSlipway(['trajectory', 'validate', file], { stateDir }).ended;
  report('the trajectory is valid', `exit ${validation.exitCode}`, validation.exitCode === 0);
  const trajectory = JSON.parse(await readFile(file, 'utf8')) as AtifTrajectory;
  const calls = callSteps({ trajectory });
  const lines = await readEngineLog(log);
  assert.ok(calls.length > 0, 'the trajectory has no call');
  report(
    'calls',
    `${calls.length} in the trajectory, ${lines.length} in the log`,
    calls.length === lines.length,
  );

  const client = new GenerateClient(engine.url);
  const { vocabularySize } = await readSize(client);
  const found = {
    sum: 0,
    own: 0,
    entry: 0,
    wrong: Infinity,
    shifted: Infinity,
    tokens: 0,
    places: 0,
  };
  const detokenize = await openDetokenizer();
  let areExact = true;
  let areDecoded = true;
  for (const [index, { metrics }] of calls.entries()) {
    const line = lines[index];
    const prompt = metrics?.prompt_token_ids ?? [];
    const ids = metrics?.completion_token_ids ?? [];
    const logprobs = metrics?.logprobs ?? [];
    assert.ok(line !== undefined && ids.length > 0 && logprobs.length === ids.length);
    found.tokens += ids.length;
    areExact &&=
      String(prompt) === String(line.prompt_ids) &&
      String(ids) === String(line.output_ids) &&
      logprobs.every((value, place) => Object.is(value, line.logprobs?.[place]));
    areDecoded &&= detokenize(ids) === line.text;

    const scored = await client.score([...prompt, ...ids], prompt.length);
    found.own = Math.max(found.own, farthest(logprobs, scored));
    const shifted = await client.score([...prompt.slice(1), ...ids], prompt.length - 1);
    found.shifted = Math.min(found.shifted, farthest(logprobs, shifted));
    for (let shown = 0; shown < shownPerTurn; shown++) {
      const place = Math.floor((shown * (ids.length - 1)) / (shownPerTurn - 1));
      const all = await client.distribution([...prompt, ...ids.slice(0, place)], vocabularySize);
      assert.equal(all.size, vocabularySize);
      const sum = [...all.values()].reduce((total, logprob) => total + Math.exp(logprob), 0);
      found.sum = Math.max(found.sum, Math.abs(sum - 1));
      const [id, logprob] = [ids[place] ?? -1, logprobs[place] ?? Number.NaN];
      found.entry = Math.max(found.entry, Math.abs((all.get(id) ?? Number.NaN) - logprob));
      const wrong = all.get((id + 1) % vocabularySize) ?? Number.NaN;
      found.wrong = Math.min(found.wrong, Math.abs(wrong - logprob));
      found.places++;
    }
  }
  report(
    'ids and log-probabilities are the engine’s, bit for bit',
    `${found.tokens} tokens`,
    areExact,
  );
  report(
    'the text is what llama.cpp’s own decoder makes of the ids',
    `${calls.length} replies`,
    areDecoded,
  );
  report(
    `distributions over ${vocabularySize} ids sum to 1 within ${sumTolerance}`,
    `${found.sum.toExponential(2)} off at most, ${found.places} positions`,
    found.sum <= sumTolerance,
  );
  report(
    `each log-probability is that of its id in the distribution, within ${logprobTolerance}`,
    `${found.entry.toExponential(2)} off at most`,
    found.entry <= logprobTolerance,
  );
  report(
    `scoring the same text again agrees within ${logprobTolerance}`,
    `${found.own.toExponential(2)} off at most, ${found.tokens} tokens`,
    found.own <= logprobTolerance,
  );
  report(
    'control: a wrong id has another log-probability',
    `${found.wrong.toExponential(2)} off at least`,
    found.wrong > logprobTolerance,
  );
  report(
    'control: without the first token of the prompt they differ in every turn',
    `${found.shifted.toExponential(2)} off at least`,
    found.shifted > logprobTolerance,
  );
} finally {
  await rm(root, { recursive: true, force: true });
}
if (failures > 0) process.exitCode = 1;

/** The vocabulary is as large as its largest distribution. */
async function readSize(client: GenerateClient): Promise<{ vocabularySize: number }> {
  const all = await client.distribution([1, 2], Number.MAX_SAFE_INTEGER);
  return { vocabularySize: all.size };
}

/** Of the library, not ours. */
async function openDetokenizer(): Promise<(ids: readonly number[]) => string> {
  const { llama: library } = await importLlama();
  const llama = await library.getLlama({
    gpu: false,
    build: 'never',
    skipDownload: true,
    progressLogs: false,
    logLevel: 'error',
    maxThreads: 1,
  });
  const model = (await llama.loadModel({
    modelPath: smallModelFile(),
    loadSignal: AbortSignal.timeout(60_000),
  })) as unknown as { detokenize(ids: readonly number[], specialTokens: boolean): string };
  return (ids) => model.detokenize(ids, false);
}
