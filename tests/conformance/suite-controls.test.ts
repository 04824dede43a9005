/**
 * Negative controls of the conformance suite: an environment that is broken in one way fails the case that is about it. Each row
 * breaks the fake and names the cases that must notice.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { never } from '../../src/core/linked-abort.ts';
import type {
  Environment,
  EnvironmentSpec,
  ProcessRequest,
} from '../../src/environments/environment.ts';
import { FakeMachine } from '../fakes/environment/fake-machine.ts';
import { FakeProvider } from '../fakes/environment/fake-provider.ts';
import type { ConformanceAdapter } from './environment/adapter.ts';
import { SuiteBench } from './environment/bench.ts';
import { environmentCases } from './environment/cases/all.ts';
import { fakeAdapter } from './fake-adapter.ts';

type Break = (environment: Environment, machine: FakeMachine) => Partial<Environment>;

/** A fake whose environments have some methods replaced by broken ones. */
class BrokenProvider extends FakeProvider {
  readonly #break: Break;

  constructor(machine: FakeMachine, breaking: Break) {
    super(machine);
    this.#break = breaking;
  }

  override environment(spec: EnvironmentSpec): Environment {
    const environment = super.environment(spec);
    return Object.assign(environment, this.#break(environment, this.machine));
  }
}

const receipt = (name: string) => ({ name, confirmedGone: ['process'], durationMs: 1 });

const rows: readonly [string, readonly string[], Break][] = [
  [
    'a start that does not wait to be let in',
    ['start.admission'],
    (environment) => {
      const start = environment.start.bind(environment);
      return { start: ({ signal }) => start({ signal }) };
    },
  ],
  [
    'a kill that only pretends',
    ['kill.detached', 'kill.writer', 'kill.fork-loop', 'kill.receipt', 'kill.other-user'],
    () => ({
      killProcesses: async () => ({
        killed: 1,
        remaining: 0,
        confirmedBy: ['cgroup'],
        durationMs: 1,
      }),
    }),
  ],
  [
    'a kill that ignores the snapshot',
    ['kill.survivors'],
    (environment) => {
      const kill = environment.killProcesses.bind(environment);
      return { killProcesses: (_keep, signal) => kill({ keys: new Set() }, signal) };
    },
  ],
  [
    'a destroy that removes nothing',
    ['destroy.receipt', 'alive.true', 'list.labels', 'destroy.aborted-start'],
    ({ name }) => ({ destroy: async () => receipt(name) }),
  ],
  [
    'a stop that loses the files',
    ['stop.keeps-files'],
    ({ name }, machine) => ({ stop: async () => machine.remove(name) }),
  ],
  ['a stop that leaves processes', ['stop.keeps-files'], () => ({ stop: async () => undefined })],
  [
    'an exec without limits',
    ['exec.timeout', 'exec.timeout-ignoring-term'],
    (environment) => {
      const exec = environment.exec.bind(environment);
      return { exec: (request, signal) => exec({ ...request, timeoutMs: null }, signal) };
    },
  ],
  [
    'an exec that forgets the user, the variables and the folder',
    ['exec.user-name', 'exec.user-id', 'exec.user-cannot-write', 'exec.env', 'exec.cwd'],
    (environment) => {
      const exec = environment.exec.bind(environment);
      return { exec: ({ command }, signal) => exec({ command }, signal) };
    },
  ],
  [
    'an open program that forgets the user, the variables and the folder',
    ['interactive.user', 'interactive.env-and-cwd'],
    (environment) => {
      const open = environment.openProcess.bind(environment);
      return {
        openProcess: ({ command, onOutput }, signal) => open({ command, onOutput }, signal),
      };
    },
  ],
  [
    'an open program that no signal reaches and no kill ends',
    ['interactive.kill'],
    (environment) => {
      const open = environment.openProcess.bind(environment);
      return {
        openProcess: async (request) => {
          const program = await open(request, never);
          return Object.assign(program, { kill: async () => undefined });
        },
      };
    },
  ],
  [
    'an open program that reads and writes text',
    ['interactive.bytes'],
    (environment) => {
      const open = environment.openProcess.bind(environment);
      return {
        openProcess: (request, signal) => {
          const onOutput: ProcessRequest['onOutput'] = (stream, bytes) =>
            request.onOutput(stream, Buffer.from(Buffer.from(bytes).toString('utf8')));
          return open({ ...request, onOutput }, signal);
        },
      };
    },
  ],
  [
    'a download that follows links',
    ['download.link-as-file', 'download.links-skipped'],
    (environment, machine) => ({
      downloadFile: async (from) => {
        await machine.sandboxes.get(environment.name)?.files.readFile(from);
      },
      downloadDir: async () => ({ skipped: [] }),
    }),
  ],
  [
    'a policy switch that does nothing',
    ['network.switch', 'network.switch-opens'],
    () => ({ setNetworkPolicy: async () => undefined }),
  ],
];

for (const [what, caseIds, breaking] of rows)
  for (const id of caseIds)
    test(`${what} fails ${id}`, async () => {
      const testCase = environmentCases.find((each) => each.id === id);
      assert.ok(testCase, `no case ${id}`);
      const sound = new FakeMachine();
      const broken = new FakeMachine();
      assert.equal(await outcome(id, sound, () => new FakeProvider(sound)), 'passed');
      const provider = () => new BrokenProvider(broken, breaking);
      assert.equal(await outcome(id, broken, provider), 'failed');
    });

async function outcome(
  id: string,
  machine: FakeMachine,
  provider: ConformanceAdapter['provider'],
): Promise<'passed' | 'failed'> {
  const testCase = environmentCases.find((each) => each.id === id)!;
  const adapter = { ...fakeAdapter(machine), provider };
  const bench = await SuiteBench.open(adapter, 'control-');
  try {
    await bench.run({ ...testCase, limitMs: 3_000 });
    return 'passed';
  } catch {
    return 'failed';
  } finally {
    for (const name of machine.sandboxes.keys()) machine.remove(name);
  }
}
