import assert from 'node:assert/strict';
import { mkdtempDisposable, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { RolloutError } from '../../../src/core/errors.ts';
import { never } from '../../../src/core/linked-abort.ts';
import { environmentSpec } from './environment-spec.ts';
import { FakeMachine } from './fake-machine.ts';
import { FakeProvider } from './fake-provider.ts';

async function started(machine = new FakeMachine()) {
  const environment = new FakeProvider(machine).environment(environmentSpec('box'));
  await environment.start({ signal: never });
  return { machine, environment };
}

const broken = new RolloutError('TRANSFER_FAILED', 'planted', { phase: 'environment' });

test('a scripted command runs in pipes, sees its call and changes files', async () => {
  const machine = new FakeMachine();
  machine.commands.set('agent', async ({ args, stdin, env, user, files, cwd }) => {
    await files.writeFile('/made', stdin);
    return { stdout: [...args, env.get('KEY'), user, cwd].join(' '), exitCode: 3 };
  });
  const { environment } = await started(machine);
  const command = 'echo input | agent one "two words"; echo "=$?"; cat /made';
  const result = await environment.exec({ command, env: { KEY: 'k' }, cwd: '/tmp' }, never);
  assert.equal(result.stdout, 'one two words k root /tmp=3\ninput\n');
});

test('a scripted command leaves processes behind until they are killed', async () => {
  const machine = new FakeMachine();
  let killed = 0;
  machine.commands.set('daemonise', ({ background }) => {
    background(['daemon', '--mark'], (signal) =>
      signal.addEventListener('abort', () => (killed += 1)),
    );
    return {};
  });
  const { environment } = await started(machine);
  await environment.exec({ command: 'daemonise' }, never);
  assert.equal(machine.processesWith('--mark').length, 1);
  const receipt = await environment.killProcesses({ keys: new Set() }, never);
  assert.deepEqual([receipt.killed, killed], [1, 1]);
  assert.equal(machine.processesWith('--mark').length, 0);
});

test('a planted fault happens as often as asked, where asked', async () => {
  const { machine, environment } = await started();
  machine.faults.plant({ at: 'exec', does: broken, times: 1, when: (line) => line.includes('b') });
  assert.equal((await environment.exec({ command: 'echo a' }, never)).stdout, 'a\n');
  await assert.rejects(environment.exec({ command: 'echo b' }, never), broken);
  assert.equal((await environment.exec({ command: 'echo b' }, never)).stdout, 'b\n');
});

test('a start that hangs ends with its signal, and what it had made is there until destroyed', async () => {
  const machine = new FakeMachine();
  machine.faults.plant({ at: 'after-create', does: 'hang' });
  const environment = new FakeProvider(machine).environment(environmentSpec('box'));
  const controller = new AbortController();
  const starting = environment.start({ signal: controller.signal });
  starting.catch(() => undefined);
  while (!machine.sandboxes.has('box')) await new Promise(setImmediate);
  const reason = new Error('enough');
  controller.abort(reason);
  await assert.rejects(starting, reason);
  assert.ok(machine.sandboxes.has('box'));
  await environment.destroy();
  assert.equal(machine.sandboxes.size, 0);
});

test('a sandbox lost in the middle is ENVIRONMENT_LOST from then on', async () => {
  const { machine, environment } = await started();
  machine.faults.plant({ at: 'exec', does: 'lose-sandbox', times: 1 });
  for (const command of ['first', 'second'])
    await assert.rejects(environment.exec({ command }, never), { code: 'ENVIRONMENT_LOST' });
  assert.equal(await environment.isAlive(never), false);
});

test('a full disk fails commands by exit code and uploads by DISK_FULL', async () => {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'slipway-fake-'));
  await writeFile(join(folder.path, 'f'), 'x');
  const { machine, environment } = await started();
  machine.sandboxes.get('box')!.files.isFull = true;
  const result = await environment.exec({ command: 'echo x > /tmp/f' }, never);
  assert.equal(result.exitCode, 1);
  await assert.rejects(environment.uploadFile(join(folder.path, 'f'), '/f', never), {
    code: 'DISK_FULL',
  });
});
