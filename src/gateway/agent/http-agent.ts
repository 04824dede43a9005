import type { IncomingMessage, ServerResponse } from 'node:http';
import { lengthOf, type HeaderList } from '../upstream/message-head.ts';
import type { BodyTaker } from '../upstream/upstream-request.ts';
import { SaidHead } from './said-head.ts';
import type { AgentListener, AgentSide } from './agent-side.ts';

/** An agent behind `node:http`. */
export class HttpAgent implements AgentSide {
  readonly arrived = null;
  readonly said: SaidHead;
  readonly length: number | null;
  readonly #request: IncomingMessage;
  readonly #response: ServerResponse;
  #hasBytes = false;
  #isDiscarded = false;

  constructor(request: IncomingMessage, response: ServerResponse) {
    this.#request = request;
    this.#response = response;
    const { url, headers, rawHeaders } = request;
    const userAgent = headers['user-agent'] ?? null;
    this.said = new SaidHead({ url, headers, rawHeaders, userAgent });
    this.length = lengthOf(request.headers['content-length'] ?? '');
  }

  get method(): 'GET' | 'POST' {
    return this.#request.method === 'GET' ? 'GET' : 'POST';
  }

  get contentEncoding(): string | null {
    const coding = this.#request.headers['content-encoding'] ?? 'identity';
    return coding === 'identity' ? null : coding;
  }

  get sentStatus(): number | null {
    return this.#response.headersSent ? this.#response.statusCode : null;
  }

  get isDelivered(): boolean {
    return this.#response.writableFinished;
  }

  listen(listener: AgentListener): void {
    const response = this.#response;
    response.on('drain', () => listener.agentDrained());
    response.on('finish', () => listener.agentDone());
    response.on('close', () => listener.agentDone());
    response.on('error', () => listener.agentDone());
  }

  start(taker: BodyTaker): void {
    const request = this.#request;
    request.on('data', (bytes: Buffer) => {
      if (!this.#isDiscarded && !taker.piece(bytes)) request.pause();
    });
    request.on('end', () => {
      if (!this.#isDiscarded) taker.end();
    });
  }

  resume(): void {
    this.#request.resume();
  }

  discard(): void {
    this.#isDiscarded = true;
    this.#request.resume();
  }

  head(status: number, headers: HeaderList): void {
    const response = this.#response;
    response.writeHead(status, [...headers]);
    // Bytes that came with the head go out with it; where there are none the agent hears of the status now.
    process.nextTick(() => {
      if (!this.#hasBytes && !response.writableEnded) response.flushHeaders();
    });
  }

  write(bytes: Buffer): boolean {
    this.#hasBytes = true;
    return this.#response.write(bytes);
  }

  end(bytes: Buffer | null): void {
    if (bytes === null) this.#response.end();
    else this.#response.end(bytes);
  }

  destroy(): void {
    this.#response.destroy();
  }
}
