import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { LinkedAbort, never } from '../../src/core/linked-abort.ts';
import { RolloutError, type Phase } from '../../src/core/errors.ts';
import { eventually } from '../conformance/environment/looking.ts';
import { FakeMachine } from '../fakes/environment/fake-machine.ts';
import { FakeProvider } from '../fakes/environment/fake-provider.ts';
import type { Fault } from '../fakes/environment/faults.ts';
import type { FolderFiles } from '../fakes/task-folder.ts';
import { answerTask, image, trialBench, type AgentBehaviour } from './trial-bench.ts';

const hang = (): Promise<never> => new Promise(() => undefined);

interface Row {
  readonly phase: Phase;
  readonly stage: string;
  readonly fault?: Fault;
  readonly agent?: AgentBehaviour;
  readonly files?: FolderFiles;
  readonly admitAgent?: () => Promise<() => void>;
}

const separate: FolderFiles = {
  ...answerTask,
  'task.toml': `[environment]\ndocker_image = "${image}"\n[verifier]\nenvironment_mode = "separate"\n`,
};

const rows: readonly Row[] = [
  { phase: 'environment', stage: 'starting environment', fault: { at: 'start', does: 'hang' } },
  {
    phase: 'environment',
    stage: 'starting environment',
    fault: { at: 'after-create', does: 'hang' },
  },
  { phase: 'agent-setup', stage: 'setting up agent', agent: { setup: hang } },
  { phase: 'agent', stage: 'running agent', agent: { run: hang } },
  { phase: 'queue', stage: 'running agent', admitAgent: hang },
  { phase: 'collect', stage: 'saving agent logs', fault: { at: 'download', does: 'hang' } },
  {
    phase: 'verifier',
    stage: 'running verifier',
    fault: { at: 'upload', does: 'hang', when: (to) => to.includes('/tests') },
  },
  {
    phase: 'verifier',
    stage: 'running verifier',
    fault: { at: 'exec', does: 'hang', when: (command) => command.includes('/tests/test.sh)') },
  },
  {
    phase: 'verifier',
    stage: 'running separate verifier',
    files: separate,
    fault: { at: 'exec', does: 'hang', when: (command) => command.includes('/tests/test.sh)') },
  },
];

describe('cancelling a trial', () => {
  for (const row of rows)
    test(
      `while ${row.stage} (${row.fault?.at ?? row.phase}) gives one receipt within 2 s and leaves no sandbox`,
      { timeout: 30_000 },
      async () => {
        const machine = new FakeMachine();
        if (row.fault !== undefined) machine.faults.plant(row.fault);
        await using bench = await trialBench({
          provider: new FakeProvider(machine),
          ...(row.files !== undefined && { files: row.files }),
          ...(row.agent !== undefined && { agent: row.agent }),
          ...(row.admitAgent !== undefined && { parts: { admitAgent: row.admitAgent } }),
        });
        const end = bench.trial.run(never);
        await eventually(row.stage, async () => bench.trial.progress.stage === row.stage, 10_000);
        await new Promise((resolve) => setTimeout(resolve, 150));
        const since = performance.now();
        const [first, second] = await Promise.all([bench.trial.cancel(), bench.trial.cancel()]);
        assert.ok(performance.now() - since < 2_000);
        assert.equal(first, second);
        assert.equal(first?.phase, row.phase);
        assert.equal(first.is_complete, true, first.problem ?? '');
        assert.deepEqual([...machine.sandboxes.keys()], []);
        const result = await end;
        assert.equal(result.exception_info?.exception_type, 'CancelledError');
        assert.equal(result.verifier_result, null);
        assert.deepEqual(result.slipway?.cancellation, first);
        assert.equal(result.slipway.outcome.cause, 'CANCELLED');
        assert.equal(bench.events.filter(({ type }) => type === 'trial:cancelled').length, 1);
        assert.equal(await bench.trial.cancel(), null, 'a finished trial has nothing to cancel');
      },
    );

  test('before it runs makes it end at once, with a record', async () => {
    const provider = new FakeProvider();
    await using bench = await trialBench({ provider });
    const receipt = await bench.trial.cancel();
    assert.equal(receipt?.phase, 'queue');
    const result = await bench.trial.run(never);
    assert.equal(result.exception_info?.exception_type, 'CancelledError');
    assert.deepEqual(result.slipway?.cancellation, receipt);
    assert.ok(bench.file('config.json'));
  });

  test('by the signal of the run does the same, and leaves no listener on it', async () => {
    const machine = new FakeMachine();
    using job = new LinkedAbort([]);
    let listeners = 0;
    const { signal } = job;
    const add = signal.addEventListener.bind(signal);
    const remove = signal.removeEventListener.bind(signal);
    signal.addEventListener = (...call: Parameters<AbortSignal['addEventListener']>) => {
      listeners += 1;
      add(...call);
    };
    signal.removeEventListener = (...call: Parameters<AbortSignal['removeEventListener']>) => {
      listeners -= 1;
      remove(...call);
    };
    {
      await using quiet = await trialBench({ provider: new FakeProvider(machine) });
      await quiet.trial.run(signal);
      assert.equal(listeners, 0);
    }
    await using bench = await trialBench({
      provider: new FakeProvider(machine),
      agent: { run: hang },
    });
    const end = bench.trial.run(signal);
    await eventually('agent', async () => bench.trial.progress.stage === 'running agent', 10_000);
    job.abort(new Error('the job was interrupted'));
    const result = await end;
    assert.equal(result.slipway?.cancellation?.phase, 'agent');
    assert.equal(result.exception_info?.exception_type, 'CancelledError');
    assert.deepEqual([...machine.sandboxes.keys()], []);
  });

  test('says what could not be removed in time, and cleaning up goes on after it', async () => {
    const machine = new FakeMachine();
    const does = new RolloutError('ENVIRONMENT_DESTROY_FAILED', 'busy', { phase: 'cleanup' });
    machine.faults.plant({ at: 'destroy', does, times: 1 });
    await using bench = await trialBench({
      provider: new FakeProvider(machine),
      agent: { run: hang },
    });
    const end = bench.trial.run(never);
    await eventually('agent', async () => bench.trial.progress.stage === 'running agent', 10_000);
    const receipt = await bench.trial.cancel();
    assert.equal(receipt?.is_complete, false);
    assert.match(receipt.problem ?? '', /busy/);
    const result = await end;
    assert.deepEqual([...machine.sandboxes.keys()], []);
    assert.ok(result.slipway?.destroyed !== null);
  });
});
