/**
 * One generation from its sending to its end. Whatever ends it early (the caller's signal, a reader that leaves, silence, an abort by id, the
 * client's destruction) goes through one link, whose first reason wins: the connection is closed, and the engine is told where it listens.
 */
import type { Dispatcher } from 'undici';
import { LinkedAbort } from '../../core/linked-abort.ts';
import type { ModelCall, ModelPart } from '../model-call.ts';
import { brokenError, engineError, type AnswerOrigin } from './answer-error.ts';
import { endless, eventDocuments, parseJson, wholeText } from './event-stream.ts';

const drainMs = 1_000;

/** All that a stream says is kept until its end; no context is as long as this, in characters and eight for each id. */
const maxStreamed = 32 * 1024 * 1024;

/** Turns the documents of an answer into parts, the `end` last; throws for what is not the dialect. */
export interface AnswerReader {
  /** One event of a stream. */
  event(document: unknown): readonly ModelPart[];
  /** The whole of an answer that is not streamed, its end included. */
  whole(document: unknown): readonly ModelPart[];
  /** After the last event; null = the stream ended before the answer did. */
  end(): readonly ModelPart[] | null;
}

export interface CallPlan {
  readonly requestId: string;
  readonly at: AnswerOrigin;
  readonly stallMs: number | null;
  readonly isStreaming: boolean;
  readonly reader: AnswerReader;
  /** Called once, when the call is over. `isComplete` is false when the engine may still be sampling. */
  readonly onOver: (isComplete: boolean) => void;
}

export class RunningCall implements ModelCall {
  readonly requestId: string;
  readonly #plan: CallPlan;
  readonly #link: LinkedAbort;
  readonly #settleOnAbort = (): void => this.#settle(false);
  #answer: Dispatcher.ResponseData | null = null;
  #stallTimer: NodeJS.Timeout | null = null;
  #isRead = false;
  #isOver = false;

  constructor(plan: CallPlan, parents: readonly AbortSignal[]) {
    this.requestId = plan.requestId;
    this.#plan = plan;
    this.#link = new LinkedAbort(parents);
    this.#link.signal.addEventListener('abort', this.#settleOnAbort, { once: true });
  }

  /** What the request is sent under. */
  get signal(): AbortSignal {
    return this.#link.signal;
  }

  /** Ends the call: its reader gets the reason. */
  abort(reason: unknown): void {
    this.#link.abort(reason);
  }

  /** Nothing came of it: the request failed, so that the engine has nothing to abort. */
  fail(): void {
    this.#settle(true);
  }

  begin(answer: Dispatcher.ResponseData): void {
    this.#stopWatching();
    this.#answer = answer;
  }

  /** Counts silence from now on, until the call begins, its answer moves or it is over. */
  watchSilence(): void {
    const { stallMs, at } = this.#plan;
    this.#stopWatching();
    if (stallMs === null) return;
    this.#stallTimer = setTimeout(
      () =>
        this.abort(
          engineError('ENGINE_STALLED', `the engine was silent for more than ${stallMs} ms`, at),
        ),
      stallMs,
    );
  }

  [Symbol.asyncIterator](): AsyncIterator<ModelPart, undefined> {
    if (this.#isRead) throw new Error('a model call is read once');
    this.#isRead = true;
    const parts = this.#parts();
    return {
      next: () => parts.next(),
      return: async () => {
        // First, because a read that waits would hold the generator.
        this.#leave();
        return await parts.return(undefined);
      },
    };
  }

  async *#parts(): AsyncGenerator<ModelPart, undefined, undefined> {
    try {
      this.signal.throwIfAborted();
      for await (const part of this.#read()) {
        // Parts of one piece of bytes come without a read that would notice.
        this.signal.throwIfAborted();
        if (part.type === 'end') this.#settle(true);
        yield part;
      }
    } catch (error) {
      this.signal.throwIfAborted();
      // Closes the connection and tells the engine: after bytes that make no sense it may still be sampling.
      this.abort(brokenError(error, this.#plan.at));
      throw this.signal.reason;
    }
    return undefined;
  }

  async *#read(): AsyncGenerator<ModelPart, undefined, undefined> {
    const { reader, at, isStreaming } = this.#plan;
    const answer = this.#answer;
    if (answer === null) throw new Error('the call has not begun');
    // Hosts that cannot stream answer whole, whatever was asked.
    const type = String(answer.headers['content-type'] ?? '');
    if (!(type.includes('event-stream') || (isStreaming && !type.includes('json')))) {
      const text = await wholeText(this.#pieces(answer), at);
      yield* reader.whole(parseJson(text, at));
      return;
    }
    let weight = 0;
    for await (const document of eventDocuments(this.#pieces(answer), at))
      for (const part of reader.event(document)) {
        weight += weightOf(part);
        if (weight > maxStreamed) throw endless('the answer', at);
        yield part;
      }
    const last = reader.end();
    if (last === null)
      throw engineError('ENGINE_STREAM_BROKEN', 'the stream ended before the answer', at);
    yield* last;
  }

  /** Bytes as they come; time that the reader spends between them is not the engine's silence. */
  async *#pieces(answer: Dispatcher.ResponseData): AsyncGenerator<Uint8Array, void, undefined> {
    // By hand: a loop that is left would destroy the body, and its connection with it.
    const pieces = answer.body[Symbol.asyncIterator]();
    for (;;) {
      this.watchSilence();
      const step = (await pieces.next()) as IteratorResult<Uint8Array, unknown>;
      this.#stopWatching();
      if (step.done === true) return;
      yield step.value;
    }
  }

  #leave(): void {
    if (!this.#isOver) this.abort(new Error('the reader of the model call left'));
  }

  #settle(isComplete: boolean): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#stopWatching();
    this.signal.removeEventListener('abort', this.#settleOnAbort);
    this.#link[Symbol.dispose]();
    if (isComplete) this.#drain();
    this.#plan.onOver(isComplete);
  }

  /** Reads what follows the end, so that the connection can be used again; without an end within bounds it is closed. */
  #drain(): void {
    const signal = AbortSignal.timeout(drainMs);
    this.#answer?.body.dump({ limit: Number.MAX_SAFE_INTEGER, signal }).catch(() => undefined);
  }

  #stopWatching(): void {
    if (this.#stallTimer !== null) clearTimeout(this.#stallTimer);
    this.#stallTimer = null;
  }
}

function weightOf(part: ModelPart): number {
  switch (part.type) {
    case 'text-delta':
    case 'reasoning-delta':
      return part.text.length;
    case 'tool-call-delta':
      return part.arguments.length;
    case 'tokens-delta':
      return 8 * part.ids.length;
    case 'prompt-ids':
    case 'tool-call-start':
    case 'tool-call-end':
    case 'end':
      return 64;
  }
}
