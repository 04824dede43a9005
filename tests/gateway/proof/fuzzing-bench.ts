/** A gateway before an upstream that answers as told, and a log in which no defect may stand. */
import { ChatUpstream } from '../../fakes/chat-upstream.ts';
import { bearer, call, startRelay, type CallAnswer, type RunningRelay } from '../relay-fixture.ts';
import type { ProvenDialect } from './judged-answer.ts';

export const pathOf: Readonly<Record<ProvenDialect, string>> = {
  messages: '/v1/messages',
  responses: '/v1/responses',
};

export class FuzzingBench implements AsyncDisposable {
  readonly upstream: ChatUpstream;
  readonly #running: RunningRelay;
  readonly #defects: string[];
  #routes = 0;
  readonly #told: { answer: string };

  private constructor(parts: {
    readonly upstream: ChatUpstream;
    readonly running: RunningRelay;
    readonly told: { answer: string };
    readonly defects: string[];
  }) {
    this.upstream = parts.upstream;
    this.#running = parts.running;
    this.#told = parts.told;
    this.#defects = parts.defects;
  }

  static async start(): Promise<FuzzingBench> {
    const told = { answer: '' };
    const upstream = await ChatUpstream.start((response) => {
      const isWhole = told.answer.startsWith('{');
      response.writeHead(200, {
        'content-type': isWhole ? 'application/json' : 'text/event-stream',
      });
      response.end(told.answer);
    });
    const defects: string[] = [];
    const running = await startRelay({
      logger: {
        log(level, message, fields) {
          if (level === 'error') defects.push(`${message} ${JSON.stringify(fields)}`);
        },
      },
    });
    return new FuzzingBench({ upstream, running, told, defects });
  }

  /** In the words of a chat completion, or of a stream of them. */
  set answer(text: string) {
    this.#told.answer = text;
  }

  /** On a route of its own: nothing of an earlier request is kept. Throws a defect that the log shows. */
  async ask(dialect: ProvenDialect, body: string): Promise<CallAnswer> {
    this.#routes += 1;
    const id = `r${this.#routes}`;
    const route = await this.#running.route(id, `${this.upstream.url}/v1`);
    this.upstream.received.length = 0;
    const answer = await call(`${this.#running.url}${pathOf[dialect]}`, {
      headers: { ...bearer(route), 'content-type': 'application/json' },
      body,
    });
    await this.#running.relay.revoke(id);
    const [defect] = this.#defects.splice(0);
    if (defect !== undefined) throw new Error(`the gateway failed: ${defect}`);
    return answer;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#running[Symbol.asyncDispose]();
    await this.upstream[Symbol.asyncDispose]();
  }
}
