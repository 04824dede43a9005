/** Sees where a JSON object or list that arrives in pieces is complete, without holding it. What is neither never is. */
export class JsonEnd {
  #depth = 0;
  #isInString = false;
  #isEscaped = false;
  #state: 'before' | 'inside' | 'complete' | 'other' = 'before';

  get isComplete(): boolean {
    return this.#state === 'complete';
  }

  push(text: string): void {
    for (const char of text) {
      if (this.#state === 'other') return;
      this.#take(char);
    }
  }

  #take(char: string): void {
    if (this.#isInString) this.#takeInString(char);
    else if (isSpace(char)) return;
    else if (this.#state === 'complete') this.#state = 'other';
    else if (char === '{' || char === '[') {
      this.#state = 'inside';
      this.#depth += 1;
    } else if (this.#state === 'before') this.#state = 'other';
    else if (char === '}' || char === ']') {
      this.#depth -= 1;
      if (this.#depth === 0) this.#state = 'complete';
    } else if (char === '"') this.#isInString = true;
  }

  #takeInString(char: string): void {
    if (this.#isEscaped) this.#isEscaped = false;
    else if (char === '\\') this.#isEscaped = true;
    else if (char === '"') this.#isInString = false;
  }
}

function isSpace(char: string): boolean {
  return char === ' ' || char === '\n' || char === '\r' || char === '\t';
}
