import { once } from 'node:events';
import type { FastifyReply } from 'fastify';

/** The answer's side of one connection, past the framework: streams, and the breakages that a framework would not do. */
export class Connection {
  readonly #raw: FastifyReply['raw'];
  readonly #reply: FastifyReply;

  constructor(reply: FastifyReply, onClose: () => void) {
    this.#raw = reply.raw;
    this.#reply = reply;
    // The sequences of a batch share one connection.
    this.#raw.setMaxListeners(0).once('close', onClose);
  }

  get isClosed(): boolean {
    const { destroyed, writableEnded, socket } = this.#raw;
    return destroyed || writableEnded || socket?.destroyed === true;
  }

  get hasBegun(): boolean {
    return this.#raw.headersSent;
  }

  openStream(requestId: string): void {
    this.#reply.hijack();
    if (this.isClosed) return;
    this.#raw.writeHead(200, {
      'content-type': 'text/event-stream; charset=utf-8',
      'cache-control': 'no-cache',
      ...requestIdHeader(requestId),
    });
    this.#raw.flushHeaders();
  }

  /** Resolves when the client takes more, or is gone. */
  async write(text: string): Promise<void> {
    if (this.isClosed || this.#raw.write(text)) return;
    // A closed connection never drains.
    await Promise.race([once(this.#raw, 'drain'), once(this.#raw, 'close')]).catch(() => undefined);
  }

  end(text: string): void {
    if (!this.isClosed) this.#raw.end(text);
  }

  /** A whole JSON answer. */
  send(status: number, body: string, requestId: string): void {
    this.#reply.hijack();
    if (this.isClosed) return;
    this.#raw.writeHead(status, jsonHead(body, requestId));
    this.#raw.end(body);
  }

  /** Announces the whole body and gives half of it. */
  async sendHalf(body: string, requestId: string): Promise<void> {
    this.#reply.hijack();
    if (this.isClosed) return;
    this.#raw.writeHead(200, jsonHead(body, requestId));
    const bytes = Buffer.from(body);
    await new Promise<void>((resolve) =>
      this.#raw.write(bytes.subarray(0, bytes.length >> 1), () => resolve()),
    );
  }

  /** Ends the connection in the middle of the answer, in good order. */
  cut(): void {
    this.#raw.socket?.end();
    this.#raw.socket?.destroySoon();
  }

  /** As a crashed process does. */
  reset(): void {
    const { socket } = this.#raw;
    if (socket === null) return;
    socket.resetAndDestroy();
  }
}

function jsonHead(body: string, requestId: string): Record<string, string | number> {
  return {
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(body),
    ...requestIdHeader(requestId),
  };
}

/** A request may be called what no header can hold. */
function requestIdHeader(requestId: string): Record<string, string> {
  return /^[\x20-\x7e]*$/.test(requestId) ? { 'x-request-id': requestId } : {};
}
