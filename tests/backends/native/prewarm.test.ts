import assert from 'node:assert/strict';
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { describe, it } from 'node:test';
import type { Agent } from '../../../src/agents/agent.ts';
import { NativeBackend } from '../../../src/backends/native/native-backend.ts';
import { systemClock } from '../../../src/core/clock.ts';
import { isRolloutError, messageOf } from '../../../src/core/errors.ts';
import { never } from '../../../src/core/linked-abort.ts';
import { silentLogger } from '../../../src/core/logger.ts';
import type { TrialConfig } from '../../../src/wire/harbor/trial-config.ts';
import { FakeProvider } from '../../fakes/environment/fake-provider.ts';
import { taskFolder } from '../../fakes/task-folder.ts';
import { answerTask } from '../../trial/trial-bench.ts';
import { portsOn } from './native-bench.ts';
import { refused } from './contract-lines.ts';

const secret = 'https://user:pass-1234@host/repository';

const settled: Agent = {
  ...{ name: 'settled', version: '1', hostFiles: [], hostOnlyVariables: [] },
  capabilities: { resume: false, loadTrajectory: false, windows: false },
  setup: () => Promise.resolve(),
  run: () => assert.fail('it only installs'),
};

/** Starts a backend that prepares `tasks`. */
async function start(
  tasks: readonly unknown[] | null,
  {
    signal = never,
    onTrial,
    before = [],
  }: { signal?: AbortSignal; onTrial?: () => void; before?: readonly string[] } = {},
) {
  const dataDir = await mkdtemp(path.join(os.tmpdir(), 'slipway-prewarm-'));
  const trialsDir = path.join(dataDir, 'trials');
  for (const name of before) {
    await mkdir(path.join(trialsDir, name), { recursive: true });
    await writeFile(path.join(trialsDir, name, 'config.json'), '');
  }
  const provider = new FakeProvider();
  const ports = portsOn(provider, { resolveAgent: () => Promise.resolve(() => settled) });
  const configs: TrialConfig[] = [];
  const backend = new NativeBackend(
    { environment: provider.kind, model: 'openai/any', prewarm: tasks },
    {
      ports: {
        ...ports,
        openTrials: async (...given) => {
          const trials = await ports.openTrials(...given);
          return {
            ...trials,
            createTrial: (request, hooks) => {
              configs.push(request.config);
              onTrial?.();
              return trials.createTrial(request, hooks);
            },
          };
        },
      },
      ...{ dataDir, baseDir: dataDir, clock: systemClock, logger: silentLogger },
      limits: { maxConcurrent: 1, maxQueueDepth: 0 },
    },
  );
  const error: unknown = await backend.start(signal).then(
    () => null,
    (thrown: unknown) => thrown,
  );
  await backend.close();
  const left = existsSync(trialsDir) ? readdirSync(trialsDir) : [];
  const written = left.map((name) =>
    readFileSync(path.join(trialsDir, name, 'config.json'), 'utf8'),
  );
  await rm(dataDir, { recursive: true, force: true });
  const live = provider.machine.sandboxes.size;
  return { error, configs, left, written, trialsDir, live };
}

describe('preparing tasks', () => {
  it('starts one trial per task that only installs, without address, key or verifier, and leaves nothing', async () => {
    await using good = await taskFolder(answerTask);
    const { error, configs, left, live } = await start([good.dir, { harbor_task: good.dir }]);
    assert.equal(error, null);
    assert.equal(configs.length, 2);
    for (const { trial_name, install_only, verifier, agent } of configs) {
      assert.match(trial_name, /^native-prewarm-[0-9a-f]{32}$/);
      assert.deepEqual([install_only, verifier.disable, agent.env], [true, true, {}]);
      assert.deepEqual(agent.kwargs, {
        enable_summarize: false,
        proactive_summarization_threshold: 0,
      });
    }
    assert.deepEqual([left, live], [[], 0]);
  });

  it('attempts all and lists all failures by label, code and folder, without address, credential or output', async () => {
    await using good = await taskFolder(answerTask);
    await using wrong = await taskFolder({
      ...answerTask,
      'task.toml': '[environment]\ndocker_image = "no-such-image-at-all"\n',
    });
    const tasks = [
      wrong.dir,
      { harbor_task: 'x', git_url: secret, task_path: 'gone', git_commit_id: 'abc' },
      { harbor_task: 'x', git_url: secret },
      'org/name@3',
      good.dir,
    ];
    const { error, configs, left, trialsDir } = await start(tasks);
    assert.ok(isRolloutError(error, 'PREWARM_FAILED'));
    const [summary, ...lines] = error.message.split('\n');
    assert.match(summary ?? '', /^4 of 5 tasks/);
    assert.equal(lines.length, 4);
    assert.match(lines[0] ?? '', /\[IMAGE_NOT_FOUND\]; /);
    const [first = ''] = lines;
    assert.ok(first.startsWith(`${wrong.dir} [`));
    assert.ok(left.some((name) => first.endsWith(`; ${path.join(trialsDir, name)}`)));
    assert.match(lines[1] ?? '', /^git:gone@abc \[[A-Z_]+\]; /);
    assert.match(lines[2] ?? '', /^git:\.@<unpinned> \[[A-Z_]+\]; /);
    assert.equal(lines[3], 'org/name@3 [REGISTRY_NOT_CONFIGURED]; no folder was made');
    assert.doesNotMatch(error.message, /pass-1234|https?:|no-such-image/);
    assert.equal(configs.length, 4, 'every task that was found was attempted');
    assert.equal(left.length, 3, 'failed ones stay, the good one is gone');
  });

  it('removes what earlier starts left of it, and nothing else', async () => {
    await using good = await taskFolder(answerTask);
    const earlier = `native-prewarm-${'0a'.repeat(16)}`;
    const others = ['native-prewarm-mine', 'native-r-1', `harbor-prewarm-${'0a'.repeat(16)}`];
    for (const tasks of [null, [good.dir]]) {
      const { error, left } = await start(tasks, { before: [earlier, ...others] });
      assert.equal(error, null);
      assert.deepEqual(left.sort(), [...others].sort());
    }
  });

  it('that is cancelled ends as a cancellation, with nothing running and nothing left', async () => {
    await using good = await taskFolder(answerTask);
    const stop = new AbortController();
    const reason = new Error('stopped while starting');
    const { error, configs, live, left } = await start([good.dir, good.dir], {
      signal: stop.signal,
      onTrial: () => stop.abort(reason),
    });
    assert.equal(messageOf(error), reason.message);
    assert.notEqual(configs.length, 0);
    assert.deepEqual([live, left], [0, []]);
  });

  it('of no task is a mistake', refused({ prewarm: [] }, /prewarm: names no task/));
  it(
    'of a reference that cannot be is refused at construction, by its place',
    refused({ prewarm: ['./a', 'name'] }, /prewarm\.1: "name" is no task reference/),
  );
});
