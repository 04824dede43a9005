/** Server-sent events of an answer, each parsed as JSON. Ends at `[DONE]` or with the body. */
import { TextDecoder } from 'node:util';
import { createParser } from 'eventsource-parser';
import { engineError, type AnswerOrigin } from './answer-error.ts';

export async function* eventDocuments(
  body: AsyncIterable<Uint8Array>,
  at: AnswerOrigin,
): AsyncGenerator<unknown, void, undefined> {
  const waiting: string[] = [];
  const parser = createParser({ onEvent: (event) => waiting.push(event.data) });
  // Bytes that are not UTF-8 would turn into characters that nobody sampled.
  const decoder = new TextDecoder('utf-8', { fatal: true });
  for await (const bytes of body) {
    parser.feed(decodeOr(decoder, { bytes, at }));
    for (const text of waiting.splice(0)) {
      if (text.trim() === '[DONE]') return;
      yield parseJson(text, at);
    }
  }
}

/** ENGINE_RESPONSE_INVALID for what is not JSON. */
export function parseJson(text: string, at: AnswerOrigin): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    const what = `the answer is not JSON (${JSON.stringify(text.slice(0, 80))})`;
    throw engineError('ENGINE_RESPONSE_INVALID', what, { ...at, cause: error });
  }
}

function decodeOr(
  decoder: TextDecoder,
  { bytes, at }: { readonly bytes: Uint8Array; readonly at: AnswerOrigin },
): string {
  try {
    return decoder.decode(bytes, { stream: true });
  } catch (error) {
    throw engineError('ENGINE_RESPONSE_INVALID', 'the answer is not UTF-8', {
      ...at,
      cause: error,
    });
  }
}
