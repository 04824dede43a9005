import assert from 'node:assert/strict';
import { test } from 'node:test';
import { systemClock } from '../../../src/core/clock.ts';
import { RolloutError } from '../../../src/core/errors.ts';
import { Limiter } from '../../../src/core/limiter.ts';
import { never } from '../../../src/core/linked-abort.ts';
import { silentLogger } from '../../../src/core/logger.ts';
import { ownedProvider } from '../../../src/environments/shared/owned-provider.ts';
import type { SandboxIntent, SandboxJournal } from '../../../src/store/sandbox-journal.ts';
import { environmentSpec } from '../../fakes/environment/environment-spec.ts';
import { FakeMachine } from '../../fakes/environment/fake-machine.ts';
import { FakeProvider } from '../../fakes/environment/fake-provider.ts';

/** A journal that remembers its calls, and what the machine held at each. */
class RecordingJournal implements SandboxJournal {
  readonly owner = { runId: 'run', bootId: 'boot', pid: 1, processStart: 1 };
  readonly calls: string[] = [];
  readonly intents: SandboxIntent[] = [];
  readonly #machine: FakeMachine;
  failing: RolloutError | null = null;

  constructor(machine: FakeMachine) {
    this.#machine = machine;
  }

  async intend(intent: SandboxIntent): Promise<void> {
    this.intents.push(intent);
    this.#record('intend', intent.name);
  }

  async created(name: string): Promise<void> {
    this.#record('created', name);
  }

  async gone(name: string): Promise<void> {
    this.#record('gone', name);
  }

  async close(): Promise<void> {
    this.calls.push('close');
  }

  #record(verb: string, name: string): void {
    const isThere = this.#machine.sandboxes.has(name) ? 'there' : 'not there';
    this.calls.push(`${verb}: ${isThere}`);
    if (this.failing !== null) throw this.failing;
  }
}

function owned(machine = new FakeMachine(), limiter = new Limiter(4)) {
  const journal = new RecordingJournal(machine);
  const logged: string[] = [];
  const logger = {
    ...silentLogger,
    log: (_level: string, message: string) => logged.push(message),
  };
  const inner = new FakeProvider(machine);
  const provider = ownedProvider(inner, { journal, limiter, clock: systemClock, logger });
  return { machine, journal, provider, logged };
}

test('a sandbox is journalled before it exists, when it exists and when it is gone', async () => {
  const { journal, provider } = owned();
  const environment = provider.environment(environmentSpec('box'));
  assert.deepEqual(journal.calls, []);
  await environment.start({ signal: never });
  await environment.destroy();
  assert.deepEqual(journal.calls, ['intend: not there', 'created: there', 'gone: not there']);
  const [intent] = journal.intents;
  assert.deepEqual(
    { ...intent, intendedAt: null },
    { name: 'box', provider: 'fake', trial: 'trial', intendedAt: null },
  );
  assert.ok(Math.abs(Date.parse(intent!.intendedAt) - Date.now()) < 60_000);
});

test('a sandbox whose intent cannot be journalled is not created', async () => {
  const { machine, journal, provider } = owned();
  journal.failing = new RolloutError('JOURNAL_FAILED', 'no', { phase: 'environment' });
  const environment = provider.environment(environmentSpec('box'));
  await assert.rejects(environment.start({ signal: never }), { code: 'JOURNAL_FAILED' });
  assert.equal(machine.sandboxes.size, 0);
  await environment.destroy();
});

test('a journal that fails after the creation or the removal is logged and does not fail the trial', async () => {
  const { machine, journal, provider, logged } = owned();
  const environment = provider.environment(environmentSpec('box'));
  const intend = journal.intend.bind(journal);
  journal.intend = async (intent) => {
    await intend(intent);
    journal.failing = new RolloutError('DISK_FULL', 'full', { phase: 'environment' });
  };
  await environment.start({ signal: never });
  assert.equal((await environment.exec({ command: 'echo on' }, never)).stdout, 'on\n');
  await environment.destroy();
  assert.equal(machine.sandboxes.size, 0);
  assert.equal(logged.length, 2);
});

test('a start that fails stays intended until the environment is destroyed', async () => {
  const { machine, journal, provider } = owned();
  const error = new RolloutError('ENVIRONMENT_START_FAILED', 'no', { phase: 'environment' });
  machine.faults.plant({ at: 'after-create', does: error });
  const environment = provider.environment(environmentSpec('box'));
  await assert.rejects(environment.start({ signal: never }), error);
  assert.deepEqual(journal.calls, ['intend: not there']);
  await environment.destroy();
  assert.deepEqual(journal.calls, ['intend: not there', 'gone: not there']);
});

test('a removal that fails is not journalled as done', async () => {
  const { machine, journal, provider } = owned();
  const environment = provider.environment(environmentSpec('box'));
  await environment.start({ signal: never });
  const error = new RolloutError('ENVIRONMENT_DESTROY_FAILED', 'no', { phase: 'cleanup' });
  machine.faults.plant({ at: 'destroy', does: error, times: 1 });
  await assert.rejects(environment.destroy(), error);
  assert.deepEqual(journal.calls, ['intend: not there', 'created: there']);
  await environment.destroy();
  assert.deepEqual(journal.calls.at(-1), 'gone: not there');
});

test('creations wait for the limiter with their intent on disk, and leave its queue when aborted', async () => {
  const limiter = new Limiter(1);
  const { machine, journal, provider } = owned(new FakeMachine(), limiter);
  machine.faults.plant({ at: 'start', does: 'hang', times: 1 });
  const [first, second] = [new AbortController(), new AbortController()];
  const hanging = provider.environment(environmentSpec('a')).start({ signal: first.signal });
  hanging.catch(() => undefined);
  await new Promise(setImmediate);
  const waiting = provider.environment(environmentSpec('b')).start({ signal: second.signal });
  waiting.catch(() => undefined);
  await new Promise(setImmediate);
  assert.equal(limiter.waiting, 1);
  assert.deepEqual(
    journal.intents.map(({ name }) => name),
    ['a', 'b'],
  );
  second.abort(new Error('second left'));
  await assert.rejects(waiting, { message: 'second left' });
  assert.equal(limiter.waiting, 0);
  first.abort(new Error('first left'));
  await assert.rejects(hanging, { message: 'first left' });
  assert.equal(limiter.active, 0);
});

test('destroying an environment that was never started journals nothing', async () => {
  const { journal, provider } = owned();
  await provider.environment(environmentSpec('box')).destroy();
  assert.deepEqual(journal.calls, []);
});

test('removing by name is journalled', async () => {
  const { journal, provider } = owned();
  await provider.environment(environmentSpec('box')).start({ signal: never });
  await provider.destroyByName('box');
  assert.equal(journal.calls.at(-1), 'gone: not there');
});
