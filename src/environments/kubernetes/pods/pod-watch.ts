/**
 * One watch over all pods of ours in the namespace, however many trials wait for one, and none while nobody waits. Whoever waits is told each state of its pod
 * from the moment in which it began to wait; that a pod is gone is told only by a list that was asked for after that moment, or by its removal itself.
 */
import { z } from 'zod';
import { messageOf } from '../../../core/errors.ts';
import { LineReader } from '../../../core/line-reader.ts';
import { LinkedAbort } from '../../../core/linked-abort.ts';
import type { ApiClient } from '../api/api-client.ts';
import { ApiError } from '../api/api-error.ts';
import type { KubernetesPorts } from '../options.ts';
import { listAll } from '../api/pages.ts';
import { ours } from './names.ts';
import { podDocument, type Pod } from './pod-status.ts';

const watchSeconds = 240;
const pauseMs = 500;
const longestPauseMs = 10_000;
const maxLineBytes = 8 * 1024 * 1024;

const watchEvent = z.object({ type: z.string(), object: z.unknown() });

interface Waiter {
  readonly name: string;
  /** Lists that were asked for before are too old to say that a pod is gone. */
  readonly sinceList: number;
  readonly tell: (pod: Pod | null) => void;
}

export class PodWatch {
  readonly #client: ApiClient;
  readonly #path: string;
  readonly #ports: Pick<KubernetesPorts, 'clock' | 'logger'>;
  readonly #waiters = new Set<Waiter>();
  #lists = 0;
  readonly #catchingUp = new Set<Promise<void>>();
  /** The watch that is being read. */
  #stream: LinkedAbort | null = null;
  #running: { readonly abort: LinkedAbort; readonly ended: Promise<void> } | null = null;

  constructor(
    client: ApiClient,
    namespace: string,
    ports: Pick<KubernetesPorts, 'clock' | 'logger'>,
  ) {
    this.#client = client;
    this.#path = `/api/v1/namespaces/${namespace}/pods`;
    this.#ports = ports;
  }

  /** Waits until `look` answers something for a state of the pod (null = gone), or throws; `pod` is the state that is known. */
  async until<T extends object>(
    { name, pod }: { readonly name: string; readonly pod: Pod | null },
    look: (pod: Pod | null) => T | null,
    signal: AbortSignal,
  ): Promise<T> {
    signal.throwIfAborted();
    const done = Promise.withResolvers<T>();
    const tell = (state: Pod | null): void => {
      try {
        const found = look(state);
        if (found !== null) done.resolve(found);
      } catch (error) {
        done.reject(error);
      }
    };
    const waiter: Waiter = { name, sinceList: this.#lists, tell };
    const onAbort = (): void => done.reject(signal.reason as Error);
    signal.addEventListener('abort', onAbort, { once: true });
    this.#waiters.add(waiter);
    if (this.#running === null) this.#running = this.#start();
    else this.#catchUp(waiter, this.#running.abort.signal);
    if (pod !== null) tell(pod);
    try {
      return await done.promise;
    } finally {
      signal.removeEventListener('abort', onAbort);
      this.#waiters.delete(waiter);
      if (this.#waiters.size === 0) this.#stop();
    }
  }

  /** Ends the watch; whoever waits goes on waiting for its own signal. Idempotent. */
  async close(): Promise<void> {
    const running = this.#running;
    this.#stop();
    await running?.ended;
    await Promise.all(this.#catchingUp);
  }

  #start(): { readonly abort: LinkedAbort; readonly ended: Promise<void> } {
    const abort = new LinkedAbort([]);
    return { abort, ended: this.#run(abort.signal) };
  }

  #stop(): void {
    this.#running?.abort.abort(new Error('nobody waits for a pod'));
    this.#running = null;
  }

  /** What a watch that runs already told between the state that the waiter knows and the beginning of its wait, it told to nobody. */
  #catchUp(waiter: Waiter, signal: AbortSignal): void {
    const work = this.#read(waiter, signal).finally(() => this.#catchingUp.delete(work));
    this.#catchingUp.add(work);
  }

  async #read({ name, tell }: Waiter, signal: AbortSignal): Promise<void> {
    try {
      const path = `${this.#path}/${name}`;
      tell(podDocument.parse(await this.#client.json({ method: 'GET', path, signal })));
    } catch (error) {
      if (error instanceof ApiError && error.status === 404) tell(null);
      else if (!isOver(signal)) this.#stream?.abort(error); // a list tells everybody, as soon as the server answers again
    }
  }

  async #run(signal: AbortSignal): Promise<void> {
    for (let failures = 0; !signal.aborted;)
      try {
        await this.#watch(await this.#list(signal), signal);
        failures = 0;
      } catch (error) {
        if (isOver(signal)) return;
        const isOld = error instanceof ApiError && error.status === 410;
        failures = isOld ? 0 : failures + 1;
        if (!isOld)
          this.#ports.logger.log('warn', 'the watch over pods broke', { cause: messageOf(error) });
        const waitMs = Math.min(longestPauseMs, pauseMs * 2 ** Math.min(failures, 6));
        await this.#ports.clock.sleep(waitMs, signal).catch(() => undefined); // nobody waits any more
      }
  }

  /** Tells everybody the present state; answers the version that it is of. */
  async #list(signal: AbortSignal): Promise<string> {
    this.#lists += 1;
    const list = this.#lists;
    const place = { path: this.#path, labelSelector: ours };
    const { items, resourceVersion } = await listAll(this.#client, place, signal);
    const pods = items.map((item) => podDocument.parse(item));
    const found = new Map(pods.map((pod) => [pod.metadata.name, pod]));
    for (const waiter of this.#waiters) {
      const pod = found.get(waiter.name) ?? null;
      if (pod !== null || list > waiter.sinceList) waiter.tell(pod);
    }
    return resourceVersion;
  }

  async #watch(resourceVersion: string, signal: AbortSignal): Promise<void> {
    using limit = new LinkedAbort([signal], {
      ms: (watchSeconds + 30) * 1000,
      reason: () => new Error('the watch did not end in time'),
    });
    this.#stream = limit;
    const body = await this.#client.stream({
      method: 'GET',
      path: this.#path,
      query: { watch: true, labelSelector: ours, resourceVersion, timeoutSeconds: watchSeconds },
      signal: limit.signal,
    });
    const lines = new LineReader(
      maxLineBytes,
      (line) => this.#event(line),
      () => limit.abort(new Error('an event of the watch is too long')),
    );
    for await (const chunk of body as AsyncIterable<Buffer>) lines.push(chunk);
  }

  #event(line: string): void {
    if (line === '') return;
    const { type, object } = watchEvent.parse(JSON.parse(line));
    if (type === 'BOOKMARK') return;
    if (type === 'ERROR') {
      const status = z.object({ code: z.number(), message: z.string() }).parse(object);
      throw new ApiError(status.code, status.message);
    }
    const pod = podDocument.parse(object);
    for (const waiter of this.#waiters)
      if (waiter.name === pod.metadata.name) waiter.tell(type === 'DELETED' ? null : pod);
  }
}

/** What the signal says now: it may have fired while something was awaited. */
function isOver(signal: AbortSignal): boolean {
  return signal.aborted;
}
