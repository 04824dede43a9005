/**
 * Decides which generations run: first come, first served, at most `maxRunning`, and only while their KV fits. Under memory pressure the youngest
 * goes back to the head of the queue with its tokens. A pause stops admission; what happens to those that run is its mode.
 */
import { messageOf } from '../../core/errors.ts';
import type { Clock } from '../../core/clock.ts';
import type { PauseMode } from '../engine.ts';
import { Generation, type Finish, type GenerationRequest } from './generation.ts';
import { KvAccount } from './kv-account.ts';
import { sampleLatency, type LatencyLaw } from './latency.ts';
import { seededRandom } from './seeded.ts';
import type { TokenModel } from './token-model.ts';
import { Turns } from './turns.ts';

/** Tokens that one generation takes in one turn of the event loop. */
const burstTokens = 16;

export interface SchedulerOptions {
  readonly model: TokenModel;
  readonly clock: Clock;
  readonly seed: number;
  readonly kvTokens: number;
  readonly maxRunning: number;
  /** Before the first token. */
  readonly latency: LatencyLaw;
  /** Before every further one. */
  readonly tokenLatency: LatencyLaw;
}

export class Scheduler {
  readonly kv: KvAccount;
  readonly totals = { requests: 0, promptTokens: 0, cachedTokens: 0, outputTokens: 0 };
  weightVersion = 'default';
  readonly #options: SchedulerOptions;
  readonly #active = new Set<Generation>();
  readonly #turns = new Turns();
  #queue: Generation[] = [];
  #isPaused = false;

  constructor(options: SchedulerOptions) {
    this.#options = options;
    this.kv = new KvAccount(options.kvTokens);
  }

  get isPaused(): boolean {
    return this.#isPaused;
  }

  get runningCount(): number {
    return this.#active.size;
  }

  get waitingCount(): number {
    return this.#queue.length;
  }

  submit(request: GenerationRequest): Generation {
    const { model, clock } = this.#options;
    const generation = new Generation(request, model.vocabulary, clock.now().getTime());
    const order = this.totals.requests++;
    this.totals.promptTokens += request.promptIds.length;
    this.#queue.push(generation);
    this.#admit();
    void this.#drive(generation, seededRandom(this.#options.seed, 7, order));
    return generation;
  }

  /** A generation that is over before it began: its prompt is computed, nothing is sampled. */
  unsampled(request: GenerationRequest): Generation {
    const { model, clock } = this.#options;
    const generation = new Generation(request, model.vocabulary, clock.now().getTime());
    generation.cachedTokens = this.kv.reuse(request.promptIds);
    this.kv.keep(request.promptIds);
    this.#conclude(generation, { type: 'length', length: 0 });
    return generation;
  }

  /** An id that is unknown or has ended is no error. */
  abort(generation: Generation, message = 'aborted by request'): void {
    this.#end(generation, { type: 'abort', message });
  }

  abortById(id: string): void {
    for (const generation of this.#all()) if (generation.request.id === id) this.abort(generation);
  }

  abortAll(message = 'aborted by request'): void {
    for (const generation of this.#all()) this.abort(generation, message);
  }

  pause(mode: PauseMode): void {
    this.#isPaused = true;
    const active = [...this.#active];
    switch (mode) {
      case 'abort':
        this.abortAll('aborted by a pause');
        return;
      case 'retract':
        for (const generation of active.reverse()) this.#retract(generation);
        return;
      case 'in_place':
        for (const generation of active)
          if (generation.state === 'running') generation.enter('frozen');
    }
  }

  continue(): void {
    this.#isPaused = false;
    for (const generation of this.#active)
      if (generation.state === 'frozen') generation.enter('running');
    this.#admit();
  }

  /** Drops the prefix cache; false while a request holds KV. */
  flush(): boolean {
    if (this.#active.size > 0) return false;
    this.kv.forget();
    return true;
  }

  #all(): Generation[] {
    return [...this.#active, ...this.#queue];
  }

  #admit(): void {
    if (this.#isPaused) return;
    for (let head = this.#queue[0]; head !== undefined; head = this.#queue[0]) {
      const fits = head.length < this.kv.freeTokens || this.#active.size === 0;
      if (this.#active.size >= this.#options.maxRunning || !fits) return;
      this.#queue.shift();
      if (head.tokens.length === 0) {
        head.cachedTokens = this.kv.reuse(head.request.promptIds);
        this.totals.cachedTokens += head.cachedTokens;
      }
      this.kv.hold(head.length);
      this.#active.add(head);
      head.enter('running');
    }
  }

  #retract(generation: Generation): void {
    this.#active.delete(generation);
    this.kv.release(generation.length);
    this.#queue.unshift(generation);
    generation.enter('waiting');
  }

  async #drive(generation: Generation, random: () => number): Promise<void> {
    const { model, clock, latency, tokenLatency } = this.#options;
    const { request, signal } = generation;
    const isPaced = tokenLatency.kind !== 'none';
    try {
      await generation.runnable();
      if (generation.state === 'ended') return;
      const firstMs = sampleLatency(latency, random);
      if (firstMs > 0) await clock.sleep(firstMs, signal);
      else await this.#turns.next();
      const sample = {
        requestId: request.id,
        promptIds: request.promptIds,
        sampling: request.sampling,
        topLogprobs: request.topLogprobs,
      };
      for await (const token of model.sample(sample, signal)) {
        // Looked at again after each wait: another generation may have sent this one back meanwhile.
        while (!isGoing(generation)) await generation.runnable();
        if (generation.finish !== null) return;
        this.#take(generation, token);
        if (isPaced) await clock.sleep(sampleLatency(tokenLatency, random), signal);
        else if (generation.tokens.length % burstTokens === 0) await this.#turns.next();
      }
      while (!isGoing(generation)) await generation.runnable();
      this.#end(generation, finishOf(generation));
    } catch (error) {
      this.#end(generation, { type: 'error', message: messageOf(error) });
    }
  }

  #take(generation: Generation, token: Parameters<Generation['push']>[0]): void {
    generation.firstWeightVersion ??= this.weightVersion;
    generation.push(token);
    this.totals.outputTokens += 1;
    this.kv.hold(1);
    if (this.kv.freeTokens >= 0) return;
    const youngest = [...this.#active].at(-1);
    if (youngest !== undefined && this.#active.size > 1) this.#retract(youngest);
  }

  #end(generation: Generation, finish: Finish): void {
    if (generation.state === 'ended') return;
    if (this.#active.delete(generation)) {
      this.kv.release(generation.length);
      this.kv.keep([...generation.request.promptIds, ...generation.tokens.map(({ id }) => id)]);
    } else this.#queue = this.#queue.filter((waiting) => waiting !== generation);
    this.#conclude(generation, finish);
    this.#admit();
  }

  #conclude(generation: Generation, finish: Finish): void {
    generation.weightVersion = this.weightVersion;
    generation.endedMs = this.#options.clock.now().getTime();
    generation.end(finish);
  }
}

function isGoing({ state }: Generation): boolean {
  return state === 'running' || state === 'ended';
}

function finishOf({ output, tokens }: Generation): Finish {
  return output.match === null
    ? { type: 'length', length: tokens.length }
    : { type: 'stop', matched: output.match };
}
