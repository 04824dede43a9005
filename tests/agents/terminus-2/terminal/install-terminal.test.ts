import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { never } from '../../../../src/core/linked-abort.ts';
import { silentLogger, type Logger } from '../../../../src/core/logger.ts';
import { RolloutError } from '../../../../src/core/errors.ts';
import { installTerminal } from '../../../../src/agents/terminus-2/terminal/install-terminal.ts';
import { environmentSpec } from '../../../fakes/environment/environment-spec.ts';
import { FakeMachine } from '../../../fakes/environment/fake-machine.ts';
import { FakeProvider } from '../../../fakes/environment/fake-provider.ts';

interface World {
  readonly machine: FakeMachine;
  /** Calls of package managers, with their users. */
  readonly calls: string[];
  readonly install: (signal?: AbortSignal, logger?: Logger) => Promise<void>;
}

/** A sandbox with these package managers; `works` = their installing brings tmux. */
async function world(
  managers: readonly string[],
  { hasTmux = false, works = true }: { readonly hasTmux?: boolean; readonly works?: boolean } = {},
): Promise<World> {
  const machine = new FakeMachine();
  const calls: string[] = [];
  let isThere = hasTmux;
  machine.commands.set('tmux', () => (isThere ? { stdout: 'tmux 3.3a\n' } : { exitCode: 127 }));
  for (const name of managers)
    machine.commands.set(name, ({ args, user }) => {
      calls.push(`${user}: ${name} ${args.join(' ')}`);
      if (works && args.includes('tmux')) isThere = true;
      return works ? {} : { stderr: 'no mirror answers\n', exitCode: 100 };
    });
  const environment = new FakeProvider(machine).environment(environmentSpec('box'));
  await environment.start({ signal: never });
  return {
    machine,
    calls,
    install: (signal = never, logger = silentLogger) =>
      installTerminal(environment, { signal, logger }),
  };
}

describe('tmux in the sandbox', () => {
  test('is used as it is where it is there', async () => {
    const { install, calls } = await world(['apt-get'], { hasTmux: true });
    await install();
    assert.deepEqual(calls, []);
  });

  const rows: readonly [string, readonly string[]][] = [
    ['apt-get', ['apt-get update', 'apt-get install -y --no-install-recommends tmux']],
    ['dnf', ['dnf install -y tmux']],
    ['yum', ['yum install -y tmux']],
    ['apk', ['apk add --no-cache tmux']],
    ['pacman', ['pacman -Sy --noconfirm tmux']],
    ['brew', ['brew install tmux']],
    ['pkg', ['pkg install -y tmux']],
    ['zypper', ['zypper --non-interactive install tmux']],
  ];
  for (const [name, expected] of rows)
    test(`is installed by ${name} as root`, async () => {
      const { install, calls } = await world([name]);
      await install();
      assert.deepEqual(
        calls,
        expected.map((line) => `root: ${line}`),
      );
    });

  test('is asked of the first package manager that is there', async () => {
    const { install, calls } = await world(['zypper', 'apk', 'yum']);
    await install();
    assert.deepEqual(calls, ['root: yum install -y tmux']);
  });

  test('that cannot be had is AGENT_SETUP_FAILED with what was said and what to do', async () => {
    for (const [managers, said] of [
      [['apk'], /no mirror answers/],
      [[], /no package manager/],
    ] as const) {
      const { install } = await world(managers, { works: false });
      await assert.rejects(install(), (error: RolloutError) => {
        assert.equal(error.code, 'AGENT_SETUP_FAILED');
        assert.match(error.detail ?? '', said);
        assert.match(error.remedy ?? '', /into the image/);
        return true;
      });
    }
  });

  test('whose installing takes too long is only warned of when it is there in the end', async () => {
    const { install, machine } = await world(['apk']);
    const timeout = new RolloutError('EXEC_TIMEOUT', 'planted', { phase: 'environment' });
    let looks = 0;
    machine.commands.set('tmux', () => {
      looks += 1;
      return looks === 1 ? { exitCode: 127 } : { stdout: 'tmux 3.3a\n' };
    });
    machine.faults.plant({ at: 'exec', does: timeout, when: (line) => line.startsWith('apk') });
    const warnings: string[] = [];
    const logger: Logger = {
      log: (level, message) => {
        if (level === 'warn') warnings.push(message);
      },
    };
    await install(never, logger);
    assert.deepEqual(warnings, ['installing tmux took too long']);
  });

  test('is not waited for when the signal fires', async () => {
    const { install, machine } = await world(['apk']);
    const controller = new AbortController();
    const reason = new Error('enough');
    machine.commands.set('apk', async () => {
      controller.abort(reason);
      return {};
    });
    await assert.rejects(install(controller.signal), reason);
  });
});
