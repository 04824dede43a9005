import { messageOf } from '../../core/errors.ts';
import { isObject } from '../../sessions/miles/message-matcher.ts';
import type { SamplesRequest } from '../../sessions/miles/miles-session.ts';
import { refusal } from '../../sessions/miles/session-error.ts';

/** The body of `POST /sessions/{id}/samples`; nothing is an empty one. SESSION_REQUEST_INVALID. */
export function readSamplesRequest(body: Buffer): SamplesRequest {
  const fields = body.length === 0 ? {} : parsed(body);
  if (!isObject(fields)) throw wrong('the request body must be a JSON object');
  const maxTokens = fields['max_seq_len'] ?? null;
  if (maxTokens !== null && !(Number.isSafeInteger(maxTokens) && Number(maxTokens) >= 0))
    throw wrong('max_seq_len must be a whole number', 'max_seq_len');
  const agent = fields['metadata'] ?? null;
  if (agent !== null && !isObject(agent)) throw wrong('metadata must be an object', 'metadata');
  return { maxTokens: maxTokens === null ? null : Number(maxTokens), agent };
}

function parsed(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString('utf8')) as unknown;
  } catch (error) {
    throw wrong(`invalid JSON body: ${messageOf(error)}`);
  }
}

const wrong = (message: string, field?: string): Error =>
  refusal('SESSION_REQUEST_INVALID', message, field === undefined ? {} : { field });
