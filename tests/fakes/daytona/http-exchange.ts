import type { IncomingMessage, ServerResponse } from 'node:http';

/** A refusal in the words of the service's own errors. */
export class Refusal extends Error {
  readonly status: number;
  readonly code: string;
  readonly headers: Readonly<Record<string, string>>;

  constructor(
    status: number,
    message: string,
    about: { readonly code?: string; readonly headers?: Readonly<Record<string, string>> } = {},
  ) {
    super(message);
    this.status = status;
    this.code = about.code ?? '';
    this.headers = about.headers ?? {};
  }
}

/** One request and the way to answer it. */
export class Exchange {
  readonly method: string;
  readonly url: URL;
  readonly request: IncomingMessage;
  readonly response: ServerResponse;

  constructor(request: IncomingMessage, response: ServerResponse) {
    this.request = request;
    this.response = response;
    this.method = request.method ?? 'GET';
    this.url = new URL(request.url ?? '/', `http://${request.headers.host ?? 'localhost'}`);
  }

  async bytes(): Promise<Buffer> {
    const chunks: Buffer[] = [];
    for await (const chunk of this.request as AsyncIterable<Buffer>) chunks.push(chunk);
    return Buffer.concat(chunks);
  }

  async json<T>(): Promise<T> {
    const bytes = await this.bytes();
    return (bytes.length === 0 ? {} : JSON.parse(bytes.toString('utf8'))) as T;
  }

  /** The parts of a form by name, or the raw body as the part `file`. */
  async form(): Promise<ReadonlyMap<string, Buffer>> {
    const [, boundary] =
      /^multipart\/form-data; ?boundary="?([^"]+)"?$/.exec(
        this.request.headers['content-type'] ?? '',
      ) ?? [];
    const bytes = await this.bytes();
    if (boundary === undefined) return new Map([['file', bytes]]);
    const parts = new Map<string, Buffer>();
    const line = Buffer.from(`--${boundary}`);
    for (let at = bytes.indexOf(line); ;) {
      const next = bytes.indexOf(line, at + line.length);
      if (at === -1 || next === -1) return parts;
      const head = bytes.indexOf('\r\n\r\n', at);
      const [, name = ''] = /; name="([^"]*)"/.exec(bytes.toString('utf8', at, head)) ?? [];
      parts.set(name, bytes.subarray(head + 4, next - 2));
      at = next;
    }
  }

  answer(body: unknown, status = 200): void {
    const text = body === undefined ? '' : JSON.stringify(body);
    this.response.writeHead(status, { 'content-type': 'application/json' });
    this.response.end(text);
  }

  refuse(error: unknown): void {
    const refusal =
      error instanceof Refusal
        ? error
        : new Refusal(500, error instanceof Error ? error.message : String(error));
    if (this.response.headersSent) {
      this.response.destroy();
      return;
    }
    const { status, message, code, headers } = refusal;
    const body = {
      statusCode: status,
      message,
      ...(code === '' ? {} : { code, source: 'DAYTONA_DAEMON' }),
    };
    this.response.writeHead(status, { 'content-type': 'application/json', ...headers });
    this.response.end(JSON.stringify(body));
  }
}
