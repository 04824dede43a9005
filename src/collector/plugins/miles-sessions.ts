/** Sessions at one or several session servers of Miles' kind, `slipway serve` among them: which one a member gets is drawn at random. */
import { z } from 'zod';
import { LinkedAbort } from '../../core/linked-abort.ts';
import type { AgentSession, AgentSessions } from './agent-sessions.ts';
import { readMilesSamples } from './miles-samples.ts';

export interface MilesSessionsOptions {
  /** Of the data listeners, without a path or with the one that sessions are below. Not empty. */
  readonly urls: readonly string[];
  readonly key: string | null;
  /** Of a sample; null = no limit. */
  readonly maxSeqLen: number | null;
  readonly fetch: typeof fetch;
  /** In [0, 1). */
  readonly random: () => number;
}

const answerMs = 120_000;
const createdSchema = z.object({ session_id: z.string() });
const healthSchema = z.object({ session_server_instance_id: z.string().nullish() });

export class MilesSessions implements AgentSessions {
  readonly #options: MilesSessionsOptions;
  readonly #urls: readonly string[];
  readonly #instances = new Map<string, Promise<string | null>>();

  constructor(options: MilesSessionsOptions) {
    this.#options = options;
    this.#urls = options.urls.map((url) => url.trim().replace(/\/+$/, ''));
  }

  /** Of all session servers: what an abort names. */
  async instanceIds(signal: AbortSignal): Promise<readonly string[]> {
    const ids = await Promise.all(this.#urls.map((url) => this.#instance(url, signal)));
    return ids.filter((id) => id !== null);
  }

  async open(signal: AbortSignal): Promise<AgentSession> {
    const { random, maxSeqLen } = this.#options;
    const url = this.#urls[Math.floor(random() * this.#urls.length)] ?? '';
    const instanceId = await this.#instance(url, signal);
    const created = await this.#asked(`${url}/sessions`, { method: 'POST', body: {} }, signal);
    const { session_id: id } = createdSchema.parse(JSON.parse(Buffer.from(created).toString()));
    const session = `${url}/sessions/${id}`;
    return {
      baseUrl: `${session}/v1`,
      name: { serverId: new URL(url).host, instanceId },
      collect: async (collecting) => {
        const body = maxSeqLen === null ? {} : { max_seq_len: maxSeqLen };
        return readMilesSamples(
          await this.#asked(`${session}/samples`, { method: 'POST', body }, collecting),
        );
      },
      close: async () => {
        // A session that stays is gone by itself when it was not used for long.
        await this.#asked(session, { method: 'DELETE', body: null }, null).catch(() => undefined);
      },
    };
  }

  #instance(url: string, signal: AbortSignal): Promise<string | null> {
    const asked =
      this.#instances.get(url) ??
      this.#asked(`${url}/health`, { method: 'GET', body: null }, signal).then(
        (bytes) =>
          healthSchema.parse(JSON.parse(Buffer.from(bytes).toString()))
            .session_server_instance_id ?? null,
      );
    this.#instances.set(url, asked);
    // Asked again the next time.
    asked.catch(() => this.#instances.delete(url));
    return asked;
  }

  async #asked(
    url: string,
    { method, body }: { readonly method: 'GET' | 'POST' | 'DELETE'; readonly body: object | null },
    signal: AbortSignal | null,
  ): Promise<Uint8Array> {
    const { key } = this.#options;
    using link = new LinkedAbort(signal === null ? [] : [signal], {
      ms: answerMs,
      reason: () => new Error(`no answer within ${answerMs / 1_000} s`),
    });
    const answer = await this.#options.fetch(url, {
      method,
      signal: link.signal,
      headers: {
        ...(key !== null && { authorization: `Bearer ${key}` }),
        ...(body !== null && { 'content-type': 'application/json' }),
      },
      ...(body !== null && { body: JSON.stringify(body) }),
    });
    const bytes = new Uint8Array(await answer.arrayBuffer());
    if (answer.ok) return bytes;
    const text = Buffer.from(bytes.subarray(0, 200)).toString();
    throw new Error(`${method} ${new URL(url).pathname} answered ${answer.status}: ${text}`);
  }
}
