/** Whether the model's server takes calls: `GET …/models` beside its chat completions. A server that does not know the path answers all the same. */
import { messageOf, RolloutError } from '../../core/errors.ts';
import { LinkedAbort } from '../../core/linked-abort.ts';

export interface ProbedModel {
  readonly url: string;
  readonly key: string | null;
}

const answerMs = 10_000;

/** ENGINE_UNAVAILABLE, ENGINE_UNAUTHORIZED, or null: it is there. Rejects only with the reason of `signal`. */
export async function probeModel(
  { url, key }: ProbedModel,
  signal: AbortSignal,
): Promise<RolloutError | null> {
  const address = new URL(url);
  address.pathname = `${address.pathname.replace(/\/+$/, '')}/models`;
  using link = new LinkedAbort([signal], {
    ms: answerMs,
    reason: () => new Error(`no answer within ${answerMs / 1000} s`),
  });
  let status: number;
  try {
    const answer = await fetch(address, {
      headers: key === null ? {} : { authorization: `Bearer ${key}` },
      signal: link.signal,
      redirect: 'manual',
    });
    await answer.body?.cancel();
    ({ status } = answer);
  } catch (error) {
    signal.throwIfAborted();
    const cause = error instanceof Error ? (error.cause ?? error) : error;
    const code = (cause as NodeJS.ErrnoException).code ?? messageOf(cause);
    return unavailable(`nothing answers at ${address.origin}: ${code}`, error);
  }
  if (status === 401 || status === 403)
    return new RolloutError('ENGINE_UNAUTHORIZED', `${address.origin} answered ${status}`, {
      phase: 'model-call',
      field: 'model.key',
      remedy: 'Give the right key in the variable or file that model.key names, then go on.',
    });
  return status >= 500 ? unavailable(`${address.origin} answered ${status}`, undefined) : null;
}

function unavailable(message: string, cause: unknown): RolloutError {
  return new RolloutError('ENGINE_UNAVAILABLE', message, {
    phase: 'model-call',
    field: 'model.url',
    remedy: 'Start the server of the model, or correct model.url, then go on.',
    ...(cause !== undefined && { cause }),
  });
}
