/** Owns resources and releases them in reverse order; every release is attempted, failures are joined. */
export class Scope implements AsyncDisposable {
  readonly #releases: (() => Promise<void>)[] = [];

  defer(release: () => Promise<void>): void {
    this.#releases.push(release);
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
