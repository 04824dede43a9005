import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  appendFile,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  rm,
  symlink,
  writeFile,
} from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { openTrajectory } from '../../src/trajectory/file-trajectory-log.ts';
import { recoverTrajectory } from '../../src/trajectory/spill.ts';
import type { NewStep, TrajectoryHead } from '../../src/trajectory/trajectory-log.ts';
import type { AtifTrajectory } from '../../src/wire/atif/atif.ts';

const head: TrajectoryHead = {
  sessionId: 'session-1',
  trajectoryId: null,
  agent: { name: 'tester', version: '1.0', model_name: 'tiny' },
  notes: null,
  extra: null,
};
const prompt: NewStep = { source: 'user', message: 'Say “hé”.\r\n😀' };
const reply: NewStep = {
  source: 'agent',
  message: 'hé',
  model_name: null,
  tool_calls: [{ tool_call_id: 'c1', function_name: 'run', arguments: { empty: null, n: 1 } }],
  metrics: { prompt_token_ids: [1, 2], completion_token_ids: [3], logprobs: [-0], cost_usd: null },
};

describe('a trajectory log', () => {
  let dir = '';
  let count = 0;
  const nextFile = (): string => path.join(dir, `t${(count += 1)}.json`);
  before(async () => {
    dir = await mkdtemp(path.join(os.tmpdir(), 'trajectory-'));
  });
  after(() => rm(dir, { recursive: true }));

  test('writes the document in the format that others write', async () => {
    const file = nextFile();
    const log = await openTrajectory({ file, head, secrets: [] });
    assert.equal(await log.append(prompt), 1);
    assert.equal(await log.append(reply), 2);
    assert.equal(log.stepCount, 2);
    await log.close({ finalMetrics: { total_steps: 2, total_cost_usd: null }, notes: 'done' });
    assert.equal(
      await readFile(file, 'utf8'),
      String.raw`{
  "schema_version": "ATIF-v1.7",
  "session_id": "session-1",
  "agent": {
    "name": "tester",
    "version": "1.0",
    "model_name": "tiny"
  },
  "steps": [
    {
      "step_id": 1,
      "source": "user",
      "message": "Say \u201ch\u00e9\u201d.\r\n\ud83d\ude00"
    },
    {
      "step_id": 2,
      "source": "agent",
      "message": "h\u00e9",
      "tool_calls": [
        {
          "tool_call_id": "c1",
          "function_name": "run",
          "arguments": {
            "empty": null,
            "n": 1
          }
        }
      ],
      "metrics": {
        "prompt_token_ids": [1, 2],
        "completion_token_ids": [3],
        "logprobs": [-0.0]
      }
    }
  ],
  "notes": "done",
  "final_metrics": {
    "total_steps": 2
  }
}
`,
    );
    assert.deepEqual(
      (await readdir(dir)).filter((name) => name.startsWith(path.basename(file, '.json'))),
      [path.basename(file)],
      'nothing is left beside the document',
    );
  });

  test('leaves no document when there was no step, and closes twice as once', async () => {
    const file = nextFile();
    await writeFile(file, 'of an earlier run');
    const log = await openTrajectory({ file, head, secrets: [] });
    await log.checkpoint(null);
    const first = log.close({ finalMetrics: null });
    assert.equal(log.close({ finalMetrics: null }), first);
    await first;
    assert.ok(!(await readdir(dir)).some((name) => name.startsWith(path.basename(file, '.json'))));
    await assert.rejects(log.append(prompt), /closed/);
  });

  test('refuses a number that is not finite, names the field and goes on without that step', async () => {
    const file = nextFile();
    const log = await openTrajectory({ file, head, secrets: [] });
    await log.append(prompt);
    await assert.rejects(
      log.append({ ...reply, metrics: { logprobs: [-1, NaN] } }),
      (error: { code?: string; field?: string }) =>
        error.code === 'TRAJECTORY_INVALID' && error.field === 'steps.1.metrics.logprobs.1',
    );
    assert.equal(await log.append(reply), 2);
    await log.close({ finalMetrics: null });
    assert.equal((JSON.parse(await readFile(file, 'utf8')) as AtifTrajectory).steps.length, 2);
  });

  test('writes a checkpoint only when the last one has been paid for', async () => {
    const file = nextFile();
    let nowMs = 0;
    // Every reading is 5 ms after the last, so a write takes 5 ms.
    const clock = { monotonicMs: () => (nowMs += 5) };
    const log = await openTrajectory({ file, head, secrets: [] }, clock);
    const stepsOnDisk = async (): Promise<number> =>
      (JSON.parse(await readFile(file, 'utf8')) as AtifTrajectory).steps.length;
    await log.append(prompt);
    await log.checkpoint(null);
    assert.equal(await stepsOnDisk(), 1);
    await log.append(reply);
    await log.checkpoint(null);
    assert.equal(await stepsOnDisk(), 1, 'ten times as long has not passed');
    nowMs += 50;
    await log.checkpoint(null);
    assert.equal(await stepsOnDisk(), 2);
    await log.close({ finalMetrics: null });
  });

  test('does not follow a link in the place of its spill', async () => {
    const file = nextFile();
    const victim = path.join(dir, 'victim');
    await writeFile(victim, 'precious');
    await symlink(victim, file.replace('.json', '.steps.ndjson'));
    const log = await openTrajectory({ file, head, secrets: [] });
    await log.append(prompt);
    await log.close({ finalMetrics: null });
    assert.equal(await readFile(victim, 'utf8'), 'precious');
  });

  test('reports a folder that is gone as a failed write', async () => {
    await assert.rejects(
      openTrajectory({ file: path.join(dir, 'no/such/t.json'), head, secrets: [] }),
      { code: 'TRAJECTORY_WRITE_FAILED' },
    );
  });

  test('goes on after a checkpoint that failed, and keeps the spill when the document cannot be written', async () => {
    const file = nextFile();
    const spill = file.replace('.json', '.steps.ndjson');
    const log = await openTrajectory({ file, head, secrets: [] });
    await log.append(prompt);
    await mkdir(file); // a folder stands where the document belongs
    await assert.rejects(log.checkpoint(null), { code: 'TRAJECTORY_WRITE_FAILED' });
    assert.equal(await log.append(reply), 2);
    await assert.rejects(log.close({ finalMetrics: null }), { code: 'TRAJECTORY_WRITE_FAILED' });
    assert.equal((await recoverTrajectory(spill)).steps.length, 2);
    assert.deepEqual(
      (await readdir(dir)).filter((name) => name.endsWith('.tmp')),
      [],
    );
  });

  test('leaves the spilled steps and no document when it is left', async () => {
    const file = nextFile();
    const log = await openTrajectory({ file, head, secrets: [] });
    const appended = [log.append(prompt), log.append(reply)];
    await Promise.all([log.leave(), log.close({ finalMetrics: null })]);
    await Promise.all(appended);
    await assert.rejects(log.append(prompt), /closed/);
    const spill = file.replace('.json', '.steps.ndjson');
    assert.equal((await recoverTrajectory(spill)).steps.length, 2);
    await assert.rejects(readFile(file), { code: 'ENOENT' });
  });

  test('leaves a readable spill when its process is killed', async () => {
    const file = nextFile();
    const module = pathToFileURL(path.resolve('src/trajectory/file-trajectory-log.ts')).href;
    const script = `
      const { openTrajectory } = await import(${JSON.stringify(module)});
      const log = await openTrajectory(${JSON.stringify({ file, head, secrets: [] })});
      await log.append(${JSON.stringify(prompt)});
      await log.append(${JSON.stringify(reply)});
      process.stdout.write('ready');
      setInterval(() => undefined, 1000);`;
    const child = spawn(process.execPath, ['--input-type=module', '-e', script], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    await once(child.stdout, 'data');
    child.kill('SIGKILL');
    await once(child, 'close');
    const spill = file.replace('.json', '.steps.ndjson');
    await appendFile(spill, '{"step_id":3,"source":"ag');
    const recovered = await recoverTrajectory(spill);
    assert.deepEqual(
      recovered.steps.map((step) => [step.step_id, step.message]),
      [
        [1, prompt.message],
        [2, reply.message],
      ],
    );
    assert.equal(recovered.session_id, 'session-1');
    assert.equal(recovered.agent.name, 'tester');
  });

  test('keeps no more memory for twenty thousand steps than for a few', async () => {
    const file = nextFile();
    const module = pathToFileURL(path.resolve('src/trajectory/file-trajectory-log.ts')).href;
    // 20,000 steps of about 2 KB are more than the heap that the process may have.
    const script = `
      const { openTrajectory } = await import(${JSON.stringify(module)});
      const log = await openTrajectory(${JSON.stringify({ file, head, secrets: ['some-secret'] })});
      const metrics = { completion_token_ids: Array.from({ length: 150 }, (_, i) => 100000 + i) };
      for (let i = 0; i < 20000; i += 1)
        await log.append({ source: 'agent', message: String(i).padEnd(700, 'x'), metrics });
      await log.close({ finalMetrics: null });
      process.stdout.write(String(log.stepCount));`;
    const child = spawn(
      process.execPath,
      ['--max-old-space-size=24', '--input-type=module', '-e', script],
      { stdio: ['ignore', 'pipe', 'inherit'] },
    );
    let output = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => (output += text));
    const [code] = (await once(child, 'close')) as [number | null];
    assert.equal(code, 0);
    assert.equal(output, '20000');
    const text = await readFile(file, 'utf8');
    assert.ok(text.length > 30_000_000 && text.endsWith('\n  ]\n}\n'));
  });
});
