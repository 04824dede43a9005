import type { ServerResponse } from 'node:http';
import { CreateRefused } from '../sandbox-host/create-meter.ts';

/** An answer other than success. */
export class Refusal extends Error {
  readonly code: number;
  readonly reason: string;
  readonly retryAfterSeconds: number | null;

  constructor(
    code: number,
    reason: string,
    message: string,
    retryAfterSeconds: number | null = null,
  ) {
    super(message);
    this.code = code;
    this.reason = reason;
    this.retryAfterSeconds = retryAfterSeconds;
  }
}

export function refusalOf(error: unknown): Refusal {
  if (error instanceof Refusal) return error;
  if (error instanceof CreateRefused)
    return new Refusal(
      429,
      'TooManyRequests',
      'the server has received too many requests and has asked us to try again later',
      Math.ceil((error.retryAfterMs ?? 1000) / 1000),
    );
  return new Refusal(500, 'InternalError', String(error));
}

export function refuse(response: ServerResponse, refusal: Refusal): void {
  if (response.headersSent) {
    response.destroy();
    return;
  }
  response.writeHead(refusal.code, {
    'content-type': 'application/json',
    ...(refusal.retryAfterSeconds !== null && { 'retry-after': String(refusal.retryAfterSeconds) }),
  });
  response.end(JSON.stringify(statusOf(refusal)));
}

export function statusOf({ code, reason, message, retryAfterSeconds }: Refusal): object {
  return {
    kind: 'Status',
    apiVersion: 'v1',
    metadata: {},
    status: 'Failure',
    message,
    reason,
    ...(retryAfterSeconds !== null && { details: { retryAfterSeconds } }),
    code,
  };
}
