/** A status of an upstream that is no success: its body is small, may name a key, and is brought into a shape that agents read. */
import { upstreamRefusal } from './gateway-error.ts';
import { SecretFilter } from './secret-filter.ts';
import type { AnswerHead } from './upstream/answer-head.ts';
import type { HeaderList } from './upstream/message-head.ts';

/** It is read no further than this. */
const refusalBytes = 64 * 1024;

export interface RefusalAnswer {
  readonly status: number;
  readonly headers: HeaderList;
  readonly body: Buffer;
  readonly message: string;
}

export class RelayedRefusal {
  readonly #head: AnswerHead;
  readonly #headers: HeaderList;
  readonly #pieces: Buffer[] = [];
  #bytes = 0;

  /** `headers`: what of them an agent may see. */
  constructor(head: AnswerHead, headers: HeaderList) {
    this.#head = head;
    this.#headers = headers;
  }

  get status(): number {
    return this.#head.status;
  }

  get isRedirection(): boolean {
    return this.#head.status < 400;
  }

  /** More of it is not read. */
  get isLongEnough(): boolean {
    return this.#bytes >= refusalBytes;
  }

  get text(): string {
    return Buffer.concat(this.#pieces).toString('utf8');
  }

  push(bytes: Buffer): void {
    this.#pieces.push(bytes);
    this.#bytes += bytes.length;
  }

  answer(options: {
    readonly withoutSecrets: (text: string) => string;
    readonly secrets: readonly Buffer[];
  }): RefusalAnswer {
    const { status } = this.#head;
    // Nobody asked for a compressed answer: what it says is lost, its status is not.
    const whole = this.#head.contentEncoding === null ? options.withoutSecrets(this.text) : '';
    const filter = new SecretFilter(options.secrets);
    const told = filter.push(Buffer.from(whole));
    // Where it was cut, half a key may be its end.
    const rest = this.isLongEnough ? Buffer.alloc(0) : filter.end();
    const text = Buffer.concat([told, rest]).toString('utf8');
    const { message, body } = upstreamRefusal(status, text);
    const bytes = Buffer.from(body ?? text);
    const replaced = ['content-encoding', 'content-length', ...(body === null ? [] : [typeName])];
    const headers = without(this.#headers, replaced);
    if (body !== null) headers.push(typeName, 'application/json');
    headers.push('content-length', String(bytes.length));
    return { status, headers, body: bytes, message };
  }
}

const typeName = 'content-type';

function without(headers: HeaderList, names: readonly string[]): string[] {
  return headers.filter((_, index) => !names.includes(headers[index - (index % 2)] ?? ''));
}
