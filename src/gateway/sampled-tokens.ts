/**
 * How many tokens an answer of chat completions holds, and its prompt as the answer says, read from its bytes as they pass. What the answer says last of `usage` holds, be it streamed or whole:
 * inside any text the quotes of the name would be escaped, so it is found without parsing. A stream that says nothing of it, or broke off before, has one token
 * for each event at least.
 */
const pattern = /"(completion|prompt)_tokens"\s*:\s*(\d+)/g;
const names = ['"completion_tokens"', '"prompt_tokens"'];
/** Of what is kept for the next piece: the name, spaces and the digits of a number. */
const carriedLength = 64;

export class SampledTokens {
  readonly #isStream: boolean;
  #carried = '';
  #said: number | null = null;
  #prompt = 0;
  #events = 0;

  constructor({ isStream }: { readonly isStream: boolean }) {
    this.#isStream = isStream;
  }

  get count(): number {
    return this.#said ?? this.#events;
  }

  /** 0 where the answer does not say. */
  get promptCount(): number {
    return this.#prompt;
  }

  push(piece: Buffer): void {
    const fresh = piece.toString('latin1');
    const text = this.#carried + fresh;
    if (this.#isStream) this.#countEvents(text, this.#carried.length);
    if (names.some((name) => text.includes(name)))
      for (const [, what, digits] of text.matchAll(pattern))
        if (what === 'prompt') this.#prompt = Number(digits);
        else this.#said = Number(digits);
    this.#carried = text.slice(-carriedLength);
  }

  /** An event begins with `data: {` at the beginning of a line; those that began in what was carried are counted already. */
  #countEvents(text: string, carried: number): void {
    const mark = 'data: {';
    for (let at = text.indexOf(mark); at !== -1; at = text.indexOf(mark, at + 1)) {
      const isNew = at + mark.length > carried;
      if (isNew && (at === 0 || text[at - 1] === '\n')) this.#events += 1;
    }
  }
}
