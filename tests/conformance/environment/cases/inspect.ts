import assert from 'node:assert/strict';
import type { Environment } from '../../../../src/environments/environment.ts';
import type { ProcessView } from '../../../../src/wire/rollout/process-view.ts';
import type { ConformanceCase } from '../adapter.ts';
import { eventually } from '../looking.ts';

const waitMs = 20_000;

/** The processes of this name, once there is one and `isRight` says so; null when the adapter cannot look. */
async function seen(
  { environment, name, signal }: Looking,
  isRight: (view: ProcessView) => boolean,
): Promise<void> {
  let last: readonly ProcessView[] | null = [];
  await eventually(
    `${name} is seen as it is`,
    async () => {
      last = await environment.inspectProcesses(signal);
      return last?.some((view) => view.name === name && isRight(view)) === true;
    },
    waitMs,
  ).catch(() => assert.fail(`${name} is not seen as it is: ${JSON.stringify(last)}`));
}

interface Looking {
  readonly environment: Environment;
  readonly name: string;
  readonly signal: AbortSignal;
}

export const inspectCases: readonly ConformanceCase[] = [
  {
    id: 'inspect.waits',
    title: 'a look tells a program that reads its input from one that sleeps, by name only',
    async run({ shared, signal }) {
      const environment = await shared();
      const onOutput = (): undefined => undefined;
      const reader = await environment.openProcess({ command: 'cat', onOutput }, signal);
      const sleeper = await environment.openProcess({ command: 'sleep 4711', onOutput }, signal);
      try {
        await seen(
          { environment, name: 'cat', signal },
          ({ waitsFor, input }) => waitsFor === 'input' && input !== null,
        );
        await seen({ environment, name: 'sleep', signal }, ({ waitsFor }) => waitsFor === 'timer');
        const views = await environment.inspectProcesses(signal);
        assert.ok(!JSON.stringify(views).includes('4711'), 'arguments are shown');
      } finally {
        await reader.kill();
        await sleeper.kill();
      }
      await eventually(
        'what was killed is not seen',
        async () => {
          const views = (await environment.inspectProcesses(signal)) ?? [];
          return views.every(({ name }) => name !== 'cat');
        },
        waitMs,
      );
    },
  },
  {
    id: 'inspect.no-sandbox',
    title: 'a look before the start and after the end is null, and changes nothing',
    async run({ create, signal }) {
      const environment = create();
      assert.equal(await environment.inspectProcesses(signal), null);
      await environment.start({ signal });
      assert.ok(Array.isArray(await environment.inspectProcesses(signal)));
      assert.equal(await environment.isAlive(signal), true);
      await environment.destroy();
      assert.equal(await environment.inspectProcesses(signal), null);
    },
  },
];
