/** Why an upstream gave no answer, or none that can be trusted. */
export type UpstreamErrorCode =
  'CONNECTION_CLOSED' | 'CONNECT_TIMEOUT' | 'INVALID_ANSWER' | 'INVALID_REQUEST' | 'CLIENT_CLOSED';

/** The message is of our own words: nothing of an address, a header or a body. */
export class UpstreamError extends Error {
  readonly code: UpstreamErrorCode;

  constructor(code: UpstreamErrorCode, message: string) {
    super(message);
    this.name = 'UpstreamError';
    this.code = code;
  }
}

export function invalidAnswer(message: string): UpstreamError {
  return new UpstreamError('INVALID_ANSWER', message);
}
