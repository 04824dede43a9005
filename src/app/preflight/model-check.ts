/** One short completion at the model's address, as a controller would have it asked for: does it answer, and with which tokens? */
import { randomUUID } from 'node:crypto';
import { RolloutError } from '../../core/errors.ts';
import type { EngineOpener } from '../../engines/engine.ts';
import { collect, type ModelResult } from '../../engines/model-call.ts';
import { urlRefused, type UrlPolicy } from '../../wire/url-policy.ts';
import { passed, warned, type Verdict } from './verdict.ts';

export interface ModelAddress {
  readonly url: string;
  /** null = none is sent. */
  readonly key: string | null;
  readonly model: string | null;
}

const maxTokens = 16;

/** CALLBACK_URL_REFUSED, MODEL_UNSPECIFIED, or what the engine says. */
export async function checkModel(
  { url, key, model }: ModelAddress,
  { openEngine, policy }: { readonly openEngine: EngineOpener; readonly policy: UrlPolicy },
  signal: AbortSignal,
): Promise<Verdict> {
  if (url.trim() === '')
    throw new RolloutError('MODEL_UNSPECIFIED', 'the address of the model is empty', {
      phase: 'config',
      field: '--model-url',
      remedy: 'Name what /chat/completions is appended to.',
    });
  const problem = policy.problem(url);
  if (problem !== null) throw urlRefused('the model URL', problem);
  const baseUrl = url.replace(/\/chat\/completions\/?$/, '');
  const engine = await openEngine({ kind: 'chat', baseUrl, apiKey: key });
  try {
    const call = await engine.generate(
      {
        requestId: `preflight-${randomUUID()}`,
        model,
        input: { kind: 'messages', messages: [{ role: 'user', content: 'Say hello.' }] },
        sampling: { maxTokens },
        isStreaming: false,
        wantsTokens: true,
      },
      signal,
    );
    return verdictOf(await collect(call));
  } finally {
    await engine.destroy(new Error('the check has ended'));
  }
}

function verdictOf({ model, usage, outputIds, logprobs }: ModelResult): Verdict {
  const count = usage?.completionTokens ?? outputIds?.length ?? null;
  const said = count === null ? 'text' : `${count} tokens`;
  const answers = `${model ?? 'the model'} answers: ${said}`;
  const missing = [
    ...(outputIds === null || outputIds.length === 0 ? ['token ids'] : []),
    ...(logprobs === null || logprobs.length === 0 ? ['log-probabilities'] : []),
  ];
  return missing.length === 0
    ? passed(`${answers} with ids and log-probabilities`)
    : warned(`${answers}, without ${missing.join(' and ')}`, {
        field: '--model-url',
        remedy:
          'Good for evaluation; for training let the engine return them (return_token_ids and logprobs).',
      });
}
