/** First in, first out, without moving what is behind when the first goes. */
export class Fifo<Item> {
  #items: (Item | undefined)[] = [];
  #first = 0;

  get length(): number {
    return this.#items.length - this.#first;
  }

  push(item: Item): void {
    this.#items.push(item);
  }

  shift(): Item | undefined {
    if (this.length === 0) return undefined;
    const item = this.#items[this.#first];
    this.#items[this.#first] = undefined;
    this.#first += 1;
    if (this.#first > 1_024 && 2 * this.#first > this.#items.length) {
      this.#items = this.#items.slice(this.#first);
      this.#first = 0;
    }
    return item;
  }
}
