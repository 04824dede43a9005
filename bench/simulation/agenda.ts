/** What will happen in a simulated world, in the order of its time; what happens at one time, in the order in which it was planned. */
interface Planned {
  readonly at: number;
  readonly order: number;
  readonly act: () => void;
}

export class Agenda {
  /** A binary heap: no entry comes before its parent. */
  readonly #heap: Planned[] = [];
  #now = 0;
  #order = 0;

  /** Milliseconds of the simulated world. */
  get now(): number {
    return this.#now;
  }

  /** A delay that is negative or no number throws a RangeError. */
  after(ms: number, act: () => void): void {
    if (!(ms >= 0)) throw new RangeError(`a delay of ${ms} ms`);
    const planned = { at: this.#now + ms, order: (this.#order += 1), act };
    const heap = this.#heap;
    let index = heap.push(planned) - 1;
    while (index > 0) {
      const parent = (index - 1) >> 1;
      const above = heap[parent];
      if (above === undefined || isBefore(above, planned)) break;
      heap[index] = above;
      index = parent;
    }
    heap[index] = planned;
  }

  /** Until this time, or until nothing is planned any more. */
  runUntil(time: number): void {
    for (let next = this.#heap[0]; next !== undefined && next.at <= time; next = this.#heap[0]) {
      this.#removeFirst();
      this.#now = next.at;
      next.act();
    }
    this.#now = Math.max(this.#now, time);
  }

  #removeFirst(): void {
    const heap = this.#heap;
    const last = heap.pop();
    if (last === undefined || heap.length === 0) return;
    let index = 0;
    for (;;) {
      const left = 2 * index + 1;
      const right = left + 1;
      let child = heap[left];
      if (child === undefined) break;
      let at = left;
      const other = heap[right];
      if (other !== undefined && isBefore(other, child)) {
        child = other;
        at = right;
      }
      if (isBefore(last, child)) break;
      heap[index] = child;
      index = at;
    }
    heap[index] = last;
  }
}

function isBefore(left: Planned, right: Planned): boolean {
  return left.at < right.at || (left.at === right.at && left.order < right.order);
}
