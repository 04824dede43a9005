import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { RolloutError } from '../core/errors.ts';
import type { JobFolder } from '../jobs/job-folder.ts';
import type { AppPorts } from './ports.ts';

/** Makes this process the only one of the machine that works on a job folder; JOB_CONFLICT when another one does. */
export function ownJob(folder: JobFolder, { locks, machine }: AppPorts): Disposable {
  const name = createHash('sha256').update(folder.dir).digest('hex').slice(0, 32);
  const lock = locks.tryAcquire(join(machine.stateDir, 'jobs', `${name}.lock`));
  if (lock === null)
    throw new RolloutError('JOB_CONFLICT', `another process is running the job in ${folder.dir}`, {
      phase: 'config',
      field: 'job_name',
      remedy: 'Wait for it, or give this job another --job-name.',
    });
  return { [Symbol.dispose]: () => lock.release() };
}
