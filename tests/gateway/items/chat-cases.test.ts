import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { isRolloutError, type ErrorCode } from '../../../src/core/errors.ts';
import type { Answer } from '../../../src/gateway/items/answer.ts';
import { loadCases, type GoldenCase } from '../golden.ts';
import { joined, readChunks, readWhole, type AnswerRead, type Asked } from './read-answer.ts';

interface ChatCase extends GoldenCase {
  readonly direction: 'stream' | 'whole';
  readonly asked?: Asked;
  /** Of a stream, else `document`. */
  readonly chunks?: readonly unknown[];
  readonly document?: unknown;
  /** One line per event, `start` and `delta` of the item at an index, where their order is the point. */
  readonly order?: readonly string[];
  readonly answer?: Answer;
  readonly notes?: readonly string[];
  readonly failure?: { readonly code: ErrorCode | null; readonly message: string };
}

describe('answers of chat upstreams, right and wrong ones', () => {
  for (const chat of loadCases('chat') as readonly ChatCase[])
    it(`${chat.case}: ${chat.title}`, () => {
      const { failure } = chat;
      if (failure === undefined) {
        checkAnswer(chat, read(chat));
        return;
      }
      assert.throws(
        () => read(chat),
        (error: unknown) => {
          if (failure.code !== null) assert.ok(isRolloutError(error, failure.code), String(error));
          assert.ok(error instanceof Error && error.message.includes(failure.message));
          return true;
        },
      );
    });
});

function read({ direction, chunks = [], document, asked }: ChatCase): AnswerRead {
  return direction === 'whole' ? readWhole(document, asked) : readChunks(chunks, asked);
}

function checkAnswer({ answer, order, notes = [] }: ChatCase, got: AnswerRead): void {
  assert.deepEqual(got.answer, answer);
  assert.deepEqual(got.notes, notes);
  if (order === undefined) return;
  const lines = joined(got.events).flatMap((event) =>
    event.type === 'end' ? [] : [`${event.type} ${event.index}`],
  );
  assert.deepEqual(lines, order);
}
