/** What is executed at a time, by all processes of a service: each writes down when it begins and ends something, in the file that `FLOOD_SIGHTS` names. */
import { appendFileSync } from 'node:fs';
import { LocalBackend } from '../../../src/backends/local/local-backend.ts';
import { NullBackend } from '../../../src/backends/null/null-backend.ts';
import { ProcessBackend } from '../../../src/app/serve/process-backend.ts';
import type { Execution, ExecutionBackend } from '../../../src/backends/execution-backend.ts';

/** In this process, from now on. */
export function noteExecutions(): void {
  const file = process.env['FLOOD_SIGHTS'] ?? '';
  const note = (change: 1 | -1): void => {
    appendFileSync(file, `${performance.timeOrigin + performance.now()} ${change}\n`);
  };
  for (const { prototype } of [NullBackend, LocalBackend, ProcessBackend]) {
    const found: unknown = Reflect.get(prototype, 'execute');
    const execute = found as (
      this: ExecutionBackend,
      ...given: Parameters<ExecutionBackend['execute']>
    ) => Execution;
    prototype.execute = function (request, hooks) {
      const execution = execute.call(this, request, hooks);
      note(1);
      const end = (): void => note(-1);
      execution.result.then(end, end);
      return execution;
    };
  }
}

/** What ends and begins in the same moment follows each other. */
export function mostAtOnce(sights: string): number {
  const changes = sights
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => line.split(' ').map(Number) as [number, number])
    .sort(([a, change], [b, other]) => a - b || change - other);
  let [now, most] = [0, 0];
  for (const [, change] of changes) most = Math.max(most, (now += change));
  return most;
}
