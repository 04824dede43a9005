/** Owns resources and releases them in reverse order; every release is attempted, failures are joined. */
export class Scope implements AsyncDisposable {
  readonly #releases: (() => Promise<void>)[] = [];

  defer(release: () => Promise<void>): void {
    this.#releases.push(release);
  }

  /** Hands everything owned so far to a new scope: what was prepared under this one outlives it. */
  move(): Scope {
    const successor = new Scope();
    for (const release of this.#releases.splice(0)) successor.defer(release);
    return successor;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const errors: unknown[] = [];
    for (let release = this.#releases.pop(); release; release = this.#releases.pop()) {
      try {
        await release();
      } catch (error) {
        errors.push(error);
      }
    }
    if (errors.length > 0) throw new AggregateError(errors, 'scope release failed');
  }
}
