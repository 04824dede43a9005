/**
 * On a loaded machine runc now and then loses a process that it has only just made, be it the first of a sandbox or a command, and says so in
 * one of these ways, directly or through an engine. Nothing of the image has run then, so that trying again is safe; and it works.
 */
import { isRolloutError } from '../../core/errors.ts';

/** The last one: the group above it was empty, and somebody removed it in the moment in which it was made. */
const lost =
  /read init-p|connection reset by peer|broken pipe|unexpected EOF|cannot start a stopped process|cgroup configuration: mkdir \S+: no such file/;

const maxAttempts = 3;

export function isLostBeforeStart(said: string): boolean {
  return lost.test(said);
}

/** Runs `attempt` again while it rejects with an EXEC_FAILED whose detail tells of such a loss, three times at most. */
export async function retryLost<T>(attempt: () => Promise<T>): Promise<T> {
  for (let count = 1; ; count += 1) {
    try {
      return await attempt();
    } catch (error) {
      const isLost = isRolloutError(error, 'EXEC_FAILED') && isLostBeforeStart(error.detail ?? '');
      if (!isLost || count === maxAttempts) throw error;
    }
  }
}
