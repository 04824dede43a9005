/** Whether an HTTP address can be reached, by a request that changes nothing there. */
import { lookup } from 'node:dns';
import type { LookupFunction } from 'node:net';
import { Agent } from 'undici';
import { isRolloutError, messageOf, RolloutError } from '../../core/errors.ts';
import { urlParts, urlRefused, type UrlPolicy } from '../../wire/url-policy.ts';
import { passed, warned, type Verdict } from './verdict.ts';

export interface Reach {
  readonly url: string;
  /** In messages: `the callback URL`. */
  readonly what: string;
  readonly field: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** null = the operator's own address, which no list has to allow. */
  readonly policy: UrlPolicy | null;
}

/** Scheme, host and port only: a path may hold a key. */
export function originOf(url: string): string {
  return urlParts(url)?.origin ?? 'no http(s) URL';
}

/** CALLBACK_URL_REFUSED, CALLBACK_FAILED. */
export async function checkReach(
  { url, what, field, headers = {}, policy }: Reach,
  signal: AbortSignal,
): Promise<Verdict> {
  const parts = urlParts(url);
  const problem = parts === null ? 'is not an http or https URL' : policy?.problem(url);
  if (parts === null || (problem !== null && problem !== undefined))
    throw urlRefused(what, problem ?? '');
  const resolve = lookup as LookupFunction;
  const connect = { lookup: policy?.guard(resolve) ?? resolve };
  const agent = new Agent({ connect, allowH2: false });
  try {
    const { authorization } = parts;
    const answer = await agent.request({
      ...{ origin: parts.origin, path: parts.path, method: 'OPTIONS', signal },
      headers: { ...headers, ...(authorization !== null && { authorization }) },
    });
    await answer.body.dump();
    return statusVerdict(parts.origin, answer.statusCode);
  } catch (error) {
    signal.throwIfAborted();
    throw unreached(error, { origin: parts.origin, field });
  } finally {
    await agent.destroy();
  }
}

function statusVerdict(origin: string, status: number): Verdict {
  const answers = `${origin} answers with ${status}`;
  if (status === 404)
    return warned(`${answers}: it may not know this path`, { remedy: 'Compare the path.' });
  return status >= 500
    ? warned(answers, { remedy: 'See in the log of the receiver why it fails.' })
    : passed(`${answers}, so it can be reached`);
}

function unreached(
  error: unknown,
  { origin, field }: { readonly origin: string; readonly field: string },
): RolloutError {
  for (let each = error; each instanceof Error; each = each.cause)
    if (isRolloutError(each)) return each;
  const { code } = error as NodeJS.ErrnoException;
  return new RolloutError(
    'CALLBACK_FAILED',
    `${origin} is not reached: ${code ?? messageOf(error)}`,
    {
      phase: 'callback',
      field,
      cause: error,
      remedy: 'Start what listens there, or correct the address as this machine reaches it.',
    },
  );
}
