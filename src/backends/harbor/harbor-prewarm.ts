/** Tasks that are set up before the server listens, as rollouts of which only the sandbox and the agent's setup are made. */
import { randomBytes } from 'node:crypto';
import { isRolloutError, RolloutError } from '../../core/errors.ts';
import type { ExecutionRequest } from '../execution-backend.ts';

/** Of nobody: without address, key, label and limits. Its prompt stands in for that of rows, so that a template is a whole task. */
export function prewarmRequest(metadata: Readonly<Record<string, unknown>>): ExecutionRequest {
  return {
    id: `prewarm-${randomBytes(16).toString('hex')}`,
    prompt: [{ role: 'user', content: '' }],
    ...{ metadata, label: null, route: null, secrets: [], wantsGrade: false },
    ...{ agentTimeoutMs: null, graderTimeoutMs: null, queuedMs: 0 },
  };
}

/** The option is this backend's, whoever carries it out. */
export function toldAsOurs(error: unknown): never {
  if (!isRolloutError(error, 'PREWARM_FAILED') || error.remedy === null) throw error;
  const { message, phase, remedy } = error;
  const field = 'backend.harbor.prewarm';
  throw new RolloutError('PREWARM_FAILED', message, { phase, field, remedy, cause: error });
}
