import { createParser } from 'eventsource-parser';
import { engineError, redact, type AnswerOrigin } from './answer-error.ts';
import { Utf8Decoder } from './utf8-decoder.ts';

/** What has to be held before it can be read is not held without end: an answer of the longest context stays far below this. */
const maxHeldBytes = 128 * 1024 * 1024;

/** Server-sent events of an answer, each parsed as JSON. Ends at `[DONE]` or with the body. */
export async function* eventDocuments(
  body: AsyncIterable<Uint8Array>,
  at: AnswerOrigin,
  maxBytes = maxHeldBytes,
): AsyncGenerator<unknown, void, undefined> {
  let heldBytes = 0;
  const waiting: string[] = [];
  const parser = createParser({ onEvent: (event) => waiting.push(event.data) });
  const decoder = new Utf8Decoder(at);
  for await (const bytes of body) {
    parser.feed(decoder.decode(bytes));
    heldBytes = waiting.length === 0 ? heldBytes + bytes.length : 0;
    if (heldBytes > maxBytes) throw endless('an event', at);
    for (const text of waiting.splice(0)) {
      if (text.trim() === '[DONE]') return;
      yield parseJson(text, at);
    }
  }
}

/** The text of a whole answer. */
export async function wholeText(
  body: AsyncIterable<Uint8Array>,
  at: AnswerOrigin,
  maxBytes = maxHeldBytes,
): Promise<string> {
  const decoder = new Utf8Decoder(at);
  let text = '';
  let heldBytes = 0;
  for await (const bytes of body) {
    heldBytes += bytes.length;
    if (heldBytes > maxBytes) throw endless('the answer', at);
    text += decoder.decode(bytes);
  }
  return text + decoder.end();
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

/** ENGINE_RESPONSE_INVALID for what goes on longer than anything an engine has to say. */
export function endless(what: string, at: AnswerOrigin): Error {
  return engineError('ENGINE_RESPONSE_INVALID', `${what} does not end`, at);
}
