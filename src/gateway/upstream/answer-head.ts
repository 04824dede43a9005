/** The head of an answer: its status, its headers, where its body ends and whether the connection can be used again. What is said of that in two ways is refused. */
import { headLines, lengthOf, type HeaderList } from './message-head.ts';
import { invalidAnswer } from './upstream-error.ts';

export interface AnswerHead {
  readonly status: number;
  readonly headers: HeaderList;
  /** null = none was told. */
  readonly contentType: string | null;
  /** null = it is plain. */
  readonly contentEncoding: string | null;
  /** Bytes of the body. */
  readonly body: number | 'chunked' | 'until-close';
  /** For how long the upstream keeps the connection, at most, once the answer has ended; 0 = it ends with it. */
  readonly keptMs: number;
}

const firstLine = /^HTTP\/1\.([01]) ([1-5]\d\d)(?: .*)?$/;

/** `text` is Latin-1 without the empty line at its end. Throws UpstreamError for what is no head. */
export function answerHead(text: string): AnswerHead {
  const lines = headLines(text);
  const match = lines === null ? null : firstLine.exec(lines.first);
  if (lines === null || match === null) throw invalidAnswer('the head of the answer is no head');
  const status = Number(match[2]);
  const isOld = match[1] === '0';
  const { headers } = lines;
  let length: string | null = null;
  let coding: string | null = null;
  let contentType: string | null = null;
  let contentEncoding: string | null = null;
  let keptMs = isOld ? 0 : Number.POSITIVE_INFINITY;
  for (let index = 0; index < headers.length; index += 2) {
    const name = (headers[index] ?? '').toLowerCase();
    const value = headers[index + 1] ?? '';
    headers[index] = name;
    switch (name) {
      case 'content-length':
        if (length !== null) throw invalidAnswer('the answer has two lengths');
        length = value;
        break;
      case 'transfer-encoding':
        if (coding !== null) throw invalidAnswer('the answer has two transfer encodings');
        coding = value.toLowerCase();
        break;
      case 'content-type':
        contentType ??= value;
        break;
      case 'content-encoding':
        contentEncoding ??= value.toLowerCase() === 'identity' ? null : value;
        break;
      case 'connection':
        if (/(?:^|,)[ \t]*close[ \t]*(?:,|$)/i.test(value)) keptMs = 0;
        break;
      case 'keep-alive':
        keptMs = Math.min(keptMs, toldMs(value));
        break;
    }
  }
  const body = bodyOf({ status, length, coding, isOld });
  if (body === 'until-close') keptMs = 0;
  return { status, headers, contentType, contentEncoding, body, keptMs };
}

function bodyOf(told: {
  readonly status: number;
  readonly length: string | null;
  readonly coding: string | null;
  readonly isOld: boolean;
}): AnswerHead['body'] {
  const { status, length, coding, isOld } = told;
  if (coding !== null) {
    if (length !== null) throw invalidAnswer('the answer has a length and a transfer encoding');
    if (coding !== 'chunked' || isOld)
      throw invalidAnswer('the answer has a transfer encoding that nobody asked for');
  }
  const bytes = length === null ? null : lengthOf(length);
  if (length !== null && bytes === null) throw invalidAnswer('the length of the answer is none');
  if (status < 200 || status === 204 || status === 304) return 0;
  return coding === null ? (bytes ?? 'until-close') : 'chunked';
}

/** A second less than the upstream says: a request that crosses its close is lost. */
function toldMs(value: string): number {
  const seconds = /(?:^|,)[ \t]*timeout[ \t]*=[ \t]*(\d{1,9})/i.exec(value)?.[1];
  return seconds === undefined ? Number.POSITIVE_INFINITY : Math.max(0, Number(seconds) - 1) * 1000;
}
