/** Loaded before a program: writes down when its null backend is given a rollout, a line with the id and the wall clock in the file that `SCALE_SIGHTS` names. */
import { appendFileSync } from 'node:fs';
import { NullBackend } from '../../src/backends/null/null-backend.ts';

const file = process.env['SCALE_SIGHTS'] ?? '';
const found: unknown = Reflect.get(NullBackend.prototype, 'execute');
const execute = found as (
  this: NullBackend,
  ...given: Parameters<NullBackend['execute']>
) => ReturnType<NullBackend['execute']>;
NullBackend.prototype.execute = function (request, hooks) {
  const at = performance.timeOrigin + performance.now();
  const execution = execute.call(this, request, hooks);
  appendFileSync(file, `${request.id} ${at}\n`);
  return execution;
};
