/**
 * Trials as rollouts: posted to a server of their own, over when the last callback of a grader has come. What comes before the first trial of a job is
 * not part of its time, and so the server's start is none of this; nor does the controller count, whose code has run before.
 */
import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { ListeningProcess } from '../server/processes.ts';
import { slipway, type Batch } from './batch.ts';

/** Seconds from the first request to the last result. */
export async function servedSeconds(batch: Batch, dataDir: string): Promise<number> {
  const { agent, count, concurrency, taskDir, modelUrl } = batch;
  await using server = await ListeningProcess.start([
    ...[slipway, 'serve', '--json', '--backend', 'native', '--data-dir', dataDir],
    ...['--port', '0', '--data-port', '0', '--max-concurrent', String(concurrency)],
    ...['--max-queue-depth', String(count), '--backend-native-agent', agent],
    ...['--backend-native-environment', 'local'],
  ]);
  await using receiver = await GradeReceiver.listen();
  await receiver.warmUp(count);
  await server.idle();
  const begin = performance.now();
  const submit = async (id: string): Promise<void> => {
    const answer = await fetch(`${server.url}/rollout`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({
        rollout_id: id,
        initial_messages: [],
        chat_completions_url: modelUrl,
        completion_callback_url: `${receiver.url}/completion`,
        grader_callback_url: `${receiver.url}/grader`,
        controller_api_key: 'bench-controller-key',
        metadata: { harbor_task: taskDir, harbor_model: 'openai/bench' },
      }),
    });
    const text = await answer.text();
    if (answer.status !== 202) throw new Error(`${id}: ${answer.status} ${text}`);
  };
  const ids = Array.from({ length: count }, (_, index) => `r-${path.basename(dataDir)}-${index}`);
  const graded = receiver.all(count);
  await Promise.all([graded, ...ids.map(submit)]);
  return (performance.now() - begin) / 1_000;
}

class GradeReceiver implements AsyncDisposable {
  readonly #server = createServer((request, response) => {
    void this.#take(request).then(() => response.end('{}'));
  });
  readonly #all = Promise.withResolvers<undefined>();
  #missing = Infinity;

  static async listen(): Promise<GradeReceiver> {
    const receiver = new GradeReceiver();
    receiver.#server.listen(0, '127.0.0.1');
    await once(receiver.#server, 'listening');
    return receiver;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Resolves when so many grades have come; rejects at one that is not 1. */
  async all(count: number): Promise<void> {
    this.#missing = count;
    await this.#all.promise;
  }

  /** Takes as many requests as there will be rollouts. */
  async warmUp(count: number): Promise<void> {
    const body = JSON.stringify({ sample: { reward: 1 } });
    const post = async (): Promise<void> => {
      const answer = await fetch(`${this.url}/warm-up`, { method: 'POST', body });
      await answer.text();
    };
    await Promise.all(Array.from({ length: count }, post));
  }

  async #take(request: IncomingMessage): Promise<void> {
    const pieces: Buffer[] = [];
    for await (const piece of request) pieces.push(piece as Buffer);
    if (request.url?.endsWith('/grader') !== true) return;
    const text = Buffer.concat(pieces).toString();
    const body = JSON.parse(text) as { sample?: { reward?: unknown } | null };
    if (body.sample?.reward !== 1)
      this.#all.reject(new Error(`a rollout did not get its reward: ${text.slice(0, 2_000)}`));
    this.#missing -= 1;
    if (this.#missing === 0) this.#all.resolve(undefined);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, 'close');
  }
}
