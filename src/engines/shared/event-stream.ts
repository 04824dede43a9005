/** Server-sent events of an answer, each parsed as JSON. Ends at `[DONE]` or with the body. */
import { createParser } from 'eventsource-parser';
import { engineError, redact, type AnswerOrigin } from './answer-error.ts';
import { Utf8Decoder } from './utf8-decoder.ts';

export async function* eventDocuments(
  body: AsyncIterable<Uint8Array>,
  at: AnswerOrigin,
): AsyncGenerator<unknown, void, undefined> {
  const waiting: string[] = [];
  const parser = createParser({ onEvent: (event) => waiting.push(event.data) });
  const decoder = new Utf8Decoder(at);
  for await (const bytes of body) {
    parser.feed(decoder.decode(bytes));
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
    const begin = redact(text.slice(0, 4096), at.secrets).slice(0, 80).toWellFormed();
    const what = `the answer is not JSON (${JSON.stringify(begin)})`;
    throw engineError('ENGINE_RESPONSE_INVALID', what, { ...at, cause: error });
  }
}
