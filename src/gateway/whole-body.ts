/** The body of a request that has to be understood before it goes on: read whole, within a limit. */
import type { IncomingMessage } from 'node:http';
import { jsonShape } from '../core/json-shape.ts';
import { RequestProblem } from './dialects/dialect.ts';

/** Deeper, and what makes messages of it would run out of stack. */
const maxDepth = 200;
/** Conversations have a small part of that; more would hold up everybody else while they are read. */
const maxValues = 500_000;

/** Its body is larger than the limit; what is left of it is read and forgotten, up to the limit once more. */
export class BodyTooLarge extends Error {}

export interface JsonBody {
  readonly body: Readonly<Record<string, unknown>>;
  /** As it came. */
  readonly text: string;
}

/** Rejects with the signal's reason, BodyTooLarge, or RequestProblem for what is no JSON object, or one that would take too long to read. */
export async function jsonBody(
  request: IncomingMessage,
  { limitBytes, signal }: { readonly limitBytes: number; readonly signal: AbortSignal },
): Promise<JsonBody> {
  const bytes = await wholeBody(request, { limitBytes, signal });
  const { depth, values } = jsonShape(bytes);
  if (depth > maxDepth) throw new RequestProblem('the body is nested too deeply');
  if (values > maxValues) throw new RequestProblem('the body holds too many values');
  const text = bytes.toString('utf8');
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch {
    throw new RequestProblem('the body is not JSON');
  }
  if (typeof body !== 'object' || body === null || Array.isArray(body))
    throw new RequestProblem('the body is not a JSON object');
  return { body: body as Readonly<Record<string, unknown>>, text };
}

/** Rejects as `jsonBody` does, whatever it holds. */
export async function wholeBody(
  request: IncomingMessage,
  { limitBytes, signal }: { readonly limitBytes: number; readonly signal: AbortSignal },
): Promise<Buffer> {
  const encoding = request.headers['content-encoding'];
  if (encoding !== undefined && encoding !== 'identity')
    throw new RequestProblem(`a body in the encoding ${encoding} is not read`, {
      field: 'content-encoding',
    });
  const { promise, resolve, reject } = Promise.withResolvers<undefined>();
  const pieces: Buffer[] = [];
  let size = 0;
  let isRefused = false;
  const onAbort = (): void => reject(signal.reason as Error);
  signal.throwIfAborted();
  signal.addEventListener('abort', onAbort, { once: true });
  request.on('data', (piece: Buffer) => {
    size += piece.length;
    if (isRefused) {
      if (size > limitBytes) request.destroy();
    } else if (size <= limitBytes) pieces.push(piece);
    else {
      refuse();
      reject(new BodyTooLarge());
    }
  });
  request.on('end', () => resolve(undefined));
  request.on('error', reject);
  request.on('close', () => reject(new Error('the client left')));
  try {
    await promise;
    return Buffer.concat(pieces);
  } catch (error) {
    refuse();
    throw error;
  } finally {
    signal.removeEventListener('abort', onAbort);
  }

  /** What follows is counted alone. */
  function refuse(): void {
    isRefused = true;
    size = 0;
    pieces.length = 0;
  }
}
