import { isHeader, type HeaderList } from './message-head.ts';
import { UpstreamError } from './upstream-error.ts';

/** Headers of a request, or of several that have the same: they are put together once. None says how a body is framed, and none is of the connection. */
export class RequestHeaders {
  readonly #list: HeaderList;
  #text: string | null = null;

  /** Names and values in turn. */
  constructor(list: HeaderList) {
    this.#list = list;
  }

  /** Their lines, Latin-1. Throws UpstreamError where they would be more than these headers. */
  get text(): string {
    return (this.#text ??= linesOf(this.#list));
  }
}

function linesOf(list: HeaderList): string {
  let text = '';
  for (let index = 0; index + 1 < list.length; index += 2) {
    const name = list[index] ?? '';
    const value = list[index + 1] ?? '';
    if (!isHeader(name, value))
      throw new UpstreamError('INVALID_REQUEST', 'a header cannot stand in a request');
    text += `${name}: ${value}\r\n`;
  }
  return text;
}
