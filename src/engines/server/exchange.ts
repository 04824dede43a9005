/**
 * One request for tokens, from its prompt to its line in the log. The line is written before the answer ends, whatever the end: a reply, a refusal,
 * an abort, a client that left, a fault. What it says was sampled and what was handed to the connection is counted here.
 */
import { randomUUID } from 'node:crypto';
import type { FastifyReply } from 'fastify';
import { messageOf } from '../../core/errors.ts';
import type { SamplingParams } from '../engine.ts';
import { Connection } from './connection.ts';
import type { EngineParts } from './engine-parts.ts';
import type { FaultRule } from './fault-script.ts';
import type { Finish, Generation } from './generation.ts';
import { contextOverflow, Refusal } from './refusal.ts';

export interface ExchangeRequest {
  readonly route: string;
  readonly id: string;
  readonly promptIds: readonly number[];
  readonly sampling: SamplingParams;
  /** When the caller sets no limit; null = as much as the context holds. */
  readonly defaultMaxTokens: number | null;
  readonly topLogprobs: number;
  readonly isStreaming: boolean;
}

/** Turns tokens into the events of one dialect. */
export interface StreamWriter {
  /** The events that tell of the tokens from `from` up to, not including, `to`. Never called for an end token or stop id. */
  tokens(from: number, to: number): string;
  /** Everything after that, and the token that ended the reply. */
  end(): string;
}

/** More than this does not go out at once: what waits for a slow client is tokens, not their events. */
const tokensPerWrite = 64;

export class Exchange {
  readonly #parts: EngineParts;
  readonly #request: ExchangeRequest;
  readonly #connection: Connection;
  readonly #gone = new AbortController();
  readonly #startedMs: number;
  #fault: FaultRule | null = null;
  #generation: Generation | null = null;
  #sentIds = 0;
  #isLogged = false;
  readonly #answered: () => void;
  readonly #noted: () => void;

  constructor(parts: EngineParts, reply: FastifyReply, request: ExchangeRequest) {
    this.#parts = parts;
    this.#request = request;
    this.#startedMs = parts.clock.now().getTime();
    this.#answered = parts.open.answers.add();
    this.#noted = parts.open.lines.add();
    this.#connection = new Connection(reply, () => {
      this.#answered();
      this.#gone.abort(new Error('the client left'));
      if (this.#generation !== null) parts.scheduler.abort(this.#generation, 'the client left');
    });
  }

  /** Passes the request to the scheduler. A Refusal when it does not fit or a fault says so. */
  async begin(): Promise<Generation> {
    const { scheduler, chooseFault, model, clock } = this.#parts;
    const { id, route, promptIds, sampling, topLogprobs } = this.#request;
    this.#fault = chooseFault({
      route,
      promptIds,
      promptText: () => model.vocabulary.decode(promptIds, { skipsSpecial: false }),
    });
    try {
      this.#refuseByFault();
      const maxTokens = this.#maxTokens();
      if (this.#fault?.fault === 'slow') await clock.sleep(this.#fault.ms, this.#gone.signal);
      this.#generation = scheduler.submit({
        id,
        promptIds,
        sampling: { ...sampling, maxTokens },
        topLogprobs,
      });
      if (this.#gone.signal.aborted) scheduler.abort(this.#generation, 'the client left');
      return this.#generation;
    } catch (error) {
      this.fail(error);
      throw error;
    }
  }

  async stream(generation: Generation, writer: StreamWriter): Promise<void> {
    try {
      await this.#stream(generation, writer);
    } catch (error) {
      // Nobody else can end an answer that has begun.
      if (this.#connection.hasBegun) this.#connection.reset();
      throw error;
    }
  }

  async #stream(generation: Generation, writer: StreamWriter): Promise<void> {
    await generation.changed(0);
    this.#throwIfFailed(generation);
    const connection = this.#connection;
    connection.openStream(this.#request.id);
    let strikeAt = this.#strikeAt();
    while (!connection.isClosed) {
      const isEnded = generation.finish !== null;
      const all = streamedTokens(generation);
      const ready = Math.min(strikeAt, all, this.#sentIds + tokensPerWrite);
      if (this.#sentIds < ready) {
        const events = writer.tokens(this.#sentIds, ready);
        this.#sentIds = ready;
        if (events !== '') await connection.write(events);
      }
      const isAtEnd = isEnded && this.#sentIds === all;
      if (strikeAt !== Infinity && (this.#sentIds === strikeAt || isAtEnd)) {
        if (await this.#strikeStream(generation)) return;
        strikeAt = Infinity;
      } else if (isAtEnd) break;
      else if (this.#sentIds === all) await generation.changed(generation.tokens.length);
    }
    await ended(generation);
    if (!connection.isClosed) this.#sentIds = generation.tokens.length;
    this.#writeLog(errorOf(generation.finish));
    connection.end(generation.finish?.type === 'error' ? errorEvent(generation) : writer.end());
  }

  /** Answers with `body` once the generation has ended. */
  async respond(generation: Generation, body: () => unknown): Promise<void> {
    const strikeAt = this.#strikeAt();
    if (strikeAt !== Infinity) {
      while (generation.finish === null && generation.tokens.length < strikeAt)
        await generation.changed(generation.tokens.length);
      if (await this.#strikeBody(generation, body)) return;
    }
    await ended(generation);
    this.#throwIfFailed(generation);
    if (!this.#gone.signal.aborted) this.#sentIds = generation.tokens.length;
    this.#writeLog(null);
    this.#connection.send(200, JSON.stringify(body()), this.#request.id);
  }

  /** For what is answered without sampling. */
  respondDirectly(body: unknown): void {
    this.#writeLog(null);
    this.#connection.send(200, JSON.stringify(body), this.#request.id);
  }

  /** The end of one sequence of a batch; a fault of the stream breaks the connection of them all. */
  async settle(generation: Generation): Promise<void> {
    await ended(generation);
    this.#throwIfFailed(generation);
    if (this.#fault?.fault === 'stall') await this.#stall(this.#fault.ms);
    else if (this.#strikeAt() !== Infinity) this.#connection.reset();
  }

  /** Before the caller sends the answer itself, as that of a batch. */
  note(): void {
    if (!this.#connection.isClosed) this.#sentIds = this.#generation?.tokens.length ?? 0;
    this.#writeLog(null);
  }

  /** The answer is this failure, also where a part of it had been sampled. */
  fail(error: unknown): void {
    const message = messageOf(error);
    if (this.#generation !== null) this.#parts.scheduler.abort(this.#generation, message);
    this.#writeLog(message);
  }

  get signal(): AbortSignal {
    return this.#gone.signal;
  }

  #refuseByFault(): void {
    const fault = this.#fault;
    if (fault?.fault === 'status-500') throw new Refusal(500, 'the engine failed (fault script)');
    if (fault?.fault === 'overload')
      throw new Refusal(fault.status, 'the engine is overloaded (fault script)', {
        retryAfterSeconds: fault.retryAfterSeconds,
      });
    if (fault?.fault === 'context-overflow')
      throw contextOverflow({ ...this.#sizes(), output: this.#parts.contextTokens });
  }

  #sizes(): { readonly context: number; readonly prompt: number } {
    return { context: this.#parts.contextTokens, prompt: this.#request.promptIds.length };
  }

  #maxTokens(): number {
    const { context, prompt } = this.#sizes();
    const { sampling, defaultMaxTokens } = this.#request;
    const asked = sampling.maxTokens ?? defaultMaxTokens;
    const output = asked ?? context - prompt;
    if (prompt === 0) throw new Refusal(400, 'the prompt is empty');
    if (prompt >= context || (sampling.maxTokens !== undefined && prompt + output > context))
      throw contextOverflow({ context, prompt, output: asked ?? 1 });
    return Math.min(output, context - prompt);
  }

  #strikeAt(): number {
    return this.#fault !== null && 'afterTokens' in this.#fault
      ? this.#fault.afterTokens
      : Infinity;
  }

  /** True when nothing of the answer follows. */
  async #strikeStream(generation: Generation): Promise<boolean> {
    switch (this.#fault?.fault) {
      case 'reset':
        this.#giveUp(generation);
        this.#connection.reset();
        return true;
      case 'truncate-body':
        this.#giveUp(generation);
        this.#connection.end('');
        return true;
      case 'malformed-chunk':
        await this.#connection.write('data: {"id":"broken","choices":[{"delta":{"content":"\n\n');
        return false;
      case 'stall':
        await this.#stall(this.#fault.ms);
        return false;
      case 'status-500':
      case 'overload':
      case 'context-overflow':
      case 'slow':
      case undefined:
        return false;
    }
  }

  async #strikeBody(generation: Generation, body: () => unknown): Promise<boolean> {
    const fault = this.#fault;
    if (fault?.fault === 'stall') {
      await this.#stall(fault.ms);
      return false;
    }
    if (this.#gone.signal.aborted) return false;
    this.#giveUp(generation);
    const text = JSON.stringify(body());
    if (fault?.fault === 'malformed-chunk') {
      this.#connection.send(200, text.slice(0, text.length >> 1), this.#request.id);
      return true;
    }
    await this.#connection.sendHalf(text, this.#request.id);
    if (fault?.fault === 'reset') this.#connection.reset();
    else this.#connection.cut();
    return true;
  }

  async #stall(ms: number | 'forever'): Promise<void> {
    const { signal } = this.#gone;
    if (signal.aborted) return;
    if (ms === 'forever') {
      // There is no end of it that a shutdown could wait for.
      this.#answered();
      await new Promise<void>((resolve) =>
        signal.addEventListener('abort', () => resolve(), { once: true }),
      );
    } else await this.#parts.clock.sleep(ms, signal).catch(() => undefined);
  }

  #giveUp(generation: Generation): void {
    this.#parts.scheduler.abort(generation, 'given up by the fault script');
    this.#writeLog(null);
  }

  #throwIfFailed(generation: Generation): void {
    const error = errorOf(generation.finish);
    if (error === null || this.#connection.hasBegun) return;
    if (generation.tokens.length > 0 && this.#request.isStreaming) return;
    this.#writeLog(error);
    throw new Refusal(500, error);
  }

  #writeLog(error: string | null): void {
    const { log, model, clock, scheduler } = this.#parts;
    this.#noted();
    if (log === null || this.#isLogged) return;
    this.#isLogged = true;
    const generation = this.#generation;
    const outputIds = generation?.tokens.map(({ id }) => id) ?? [];
    const text = generation?.output.text ?? '';
    const { finish, weightVersion, firstWeightVersion } = generation ?? { finish: null };
    log.write({
      time: clock.now().toISOString(),
      request_id: this.#request.id,
      route: this.#request.route,
      model: model.name,
      weight_version: weightVersion ?? scheduler.weightVersion,
      first_weight_version: firstWeightVersion ?? null,
      prompt_ids: this.#request.promptIds,
      output_ids: outputIds,
      logprobs: generation?.tokens.map(({ logprob }) => logprob) ?? [],
      sent_ids: this.#sentIds,
      text,
      canonical: this.#isCanonical(outputIds, text),
      finish_reason: finish?.type ?? null,
      fault: this.#fault?.fault ?? null,
      error,
      started_ms: this.#startedMs,
      ended_ms: clock.now().getTime(),
      stream: this.#request.isStreaming,
    });
  }

  #isCanonical(ids: readonly number[], text: string): boolean {
    const { vocabulary } = this.#parts.model;
    const shown = typeof this.#generation?.output.match === 'number' ? ids.slice(0, -1) : ids;
    const encoded = vocabulary.encode(text, { parsesSpecial: true });
    return encoded.length === shown.length && encoded.every((id, index) => id === shown[index]);
  }
}

/** A caller's own name for the request, or a new one. */
export function requestIdOf(given: unknown, prefix: string): string {
  return typeof given === 'string' && given !== '' ? given : `${prefix}${randomUUID()}`;
}

/** The token that ends a reply goes with the reason of the end. */
function streamedTokens({ tokens, output }: Generation): number {
  const last = tokens.at(-1);
  return tokens.length - (last !== undefined && output.isStopId(last.id) ? 1 : 0);
}

async function ended(generation: Generation): Promise<void> {
  while (generation.finish === null) await generation.changed(generation.tokens.length);
}

function errorOf(finish: Finish | null): string | null {
  return finish?.type === 'error' ? finish.message : null;
}

function errorEvent({ finish }: Generation): string {
  const refusal = new Refusal(500, errorOf(finish) ?? 'the engine failed');
  return `data: ${JSON.stringify(refusal.body('openai'))}\n\ndata: [DONE]\n\n`;
}
