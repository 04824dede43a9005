/**
 * A small controller: it asks a rollout server for several rollouts of each task, waits for the callbacks and prints one line of JSON per result.
 *
 *     node controller.js --server http://127.0.0.1:8000 --model-url http://127.0.0.1:30000/v1 --rollouts 4 TASK...
 *
 * TASK is a folder on the machine of the server, or a package `org/name@ref`. A key of the server goes into SLIPWAY_KEY, one of the model into
 * MODEL_KEY. An interruption cancels what has not ended.
 */
import { basename } from 'node:path';
import { performance } from 'node:perf_hooks';
import { parseArgs } from 'node:util';
import { RolloutController } from 'slipway';

const { values, positionals: tasks } = parseArgs({
  options: {
    server: { type: 'string', default: 'http://127.0.0.1:8000' },
    'model-url': { type: 'string', default: '' },
    rollouts: { type: 'string', default: '1' },
  },
  allowPositionals: true,
});

const interrupted = new AbortController();
for (const name of ['SIGINT', 'SIGTERM']) {
  process.once(name, () => interrupted.abort(new Error(`interrupted by ${name}`)));
}

const controller = new RolloutController({
  serverUrl: values.server,
  ...(process.env.SLIPWAY_KEY ? { serverKey: process.env.SLIPWAY_KEY } : {}),
});
await controller.start();

/** @param {string} task @param {number} index */
async function rollOut(task, index) {
  const startedMs = performance.now();
  const result = await controller.run(
    {
      rollout_id: `${basename(task)}-${index}-${process.pid}`,
      // A Harbor task brings its own instruction; other backends are given these messages.
      initial_messages: [{ role: 'user', content: `Work on ${basename(task)}.` }],
      metadata: { harbor_task: task },
      chat_completions_url: values['model-url'],
      ...(process.env.MODEL_KEY ? { llm_api_key: process.env.MODEL_KEY } : {}),
      extra_fields: { run_index: index },
    },
    interrupted.signal,
  );
  const { id, status, reward, completion, grader } = result;
  const message = grader?.err_message ?? completion?.err_message ?? null;
  const ms = Math.round(performance.now() - startedMs);
  console.log(JSON.stringify({ task: basename(task), id, status, reward, message, ms }));
}

const count = Number(values.rollouts);
const runs = tasks.flatMap((task) =>
  Array.from({ length: count }, (_, index) => rollOut(task, index + 1)),
);
const failed = (await Promise.allSettled(runs)).filter(({ status }) => status === 'rejected');
await controller.close();
for (const why of new Set(failed.map(({ reason }) => reason.message))) {
  console.error(`without a result: ${why}`);
}
process.exitCode = interrupted.signal.aborted ? 130 : failed.length === 0 ? 0 : 1;
