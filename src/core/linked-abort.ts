/** A signal that follows its parents until disposed. Disposal detaches it, so that a long-lived parent retains nothing. */
export class LinkedAbort implements Disposable {
  readonly #controller = new AbortController();
  readonly #detach: (() => void)[] = [];

  constructor(
    parents: readonly AbortSignal[],
    timeout?: { readonly ms: number; readonly reason: () => unknown },
  ) {
    for (const parent of parents) {
      if (parent.aborted) {
        this.abort(parent.reason);
        return;
      }
      const follow = (): void => this.abort(parent.reason);
      parent.addEventListener('abort', follow, { once: true });
      this.#detach.push(() => parent.removeEventListener('abort', follow));
    }
    if (timeout !== undefined && Number.isFinite(timeout.ms)) {
      // setTimeout fires at once beyond 2^31-1 ms: longer limits are clamped to that (24.8 days).
      const timer = setTimeout(
        () => this.abort(timeout.reason()),
        Math.min(timeout.ms, 2 ** 31 - 1),
      );
      this.#detach.push(() => clearTimeout(timer));
    }
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** The first reason wins. */
  abort(reason: unknown): void {
    this.#controller.abort(reason);
    this[Symbol.dispose]();
  }

  [Symbol.dispose](): void {
    for (const detach of this.#detach.splice(0)) detach();
  }
}

/** A signal that never fires, for callers without a cancellation of their own (tests, tools). */
export const never: AbortSignal = new AbortController().signal;
