/**
 * Tells calls that ask again what an earlier one asked. A client whose stream broke, or that did not like it, sends the same conversation once more, often
 * without streaming: the agent goes on with the later answer, and training on both would count one turn twice. Asking the same on purpose, after an answer that
 * was read to its end and as it was asked before, is no repetition: that is how samples are drawn.
 */
import { hash } from 'node:crypto';
import type { Clock } from '../../core/clock.ts';
import type { JsonRecord } from '../../engines/shared/json.ts';

/** Clients that wait before they try again wait less. */
const longestMs = 120_000;
const mostKept = 32;

export interface SeenCall {
  /** The first call of those that ask the same; null = it asks something new. */
  readonly repeats: number | null;
  /** `isUsed`: the agent got all of it. Without an answer there is nothing that a later call could repeat. */
  ended(end: { readonly isUsed: boolean; readonly hasAnswer: boolean }): void;
}

interface Earlier {
  readonly call: number;
  readonly first: number;
  readonly conversation: string;
  readonly isStreaming: boolean;
  state: 'running' | 'used' | 'unused' | 'nothing';
  atMs: number;
}

export class EarlierCalls {
  readonly #clock: Clock;
  readonly #calls: Earlier[] = [];

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  see(call: number, body: JsonRecord, isStreaming: boolean): SeenCall {
    const nowMs = this.#clock.monotonicMs();
    const { messages, tools, response_format: format } = body;
    const conversation = hash('sha1', JSON.stringify([messages, tools, format]));
    const same = this.#calls.findLast(
      (one) => one.conversation === conversation && isRepeated(one, { isStreaming, nowMs }),
    );
    const seen: Earlier = {
      ...{ call, first: same?.first ?? call, conversation, isStreaming },
      ...{ state: 'running', atMs: nowMs },
    };
    this.#calls.push(seen);
    if (this.#calls.length > mostKept) this.#calls.shift();
    return {
      repeats: same?.first ?? null,
      ended: ({ isUsed, hasAnswer }) => {
        seen.state = hasAnswer ? (isUsed ? 'used' : 'unused') : 'nothing';
        seen.atMs = this.#clock.monotonicMs();
      },
    };
  }
}

function isRepeated(
  earlier: Earlier,
  now: { readonly isStreaming: boolean; readonly nowMs: number },
): boolean {
  if (earlier.state === 'nothing') return false;
  if (earlier.state !== 'running' && now.nowMs - earlier.atMs > longestMs) return false;
  // The same without streaming: the client gave the stream up, whatever became of it.
  if (earlier.isStreaming && !now.isStreaming) return true;
  return earlier.state === 'unused';
}
