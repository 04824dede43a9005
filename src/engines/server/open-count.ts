/** Counts what is open, so that a shutdown can wait for the last of it. */
export class OpenCount {
  #open = 0;
  #readers: (() => void)[] = [];

  /** One more. What it gives takes that back; again is no error. */
  add(): () => void {
    this.#open += 1;
    let isOpen = true;
    return () => {
      if (!isOpen) return;
      isOpen = false;
      this.#open -= 1;
      if (this.#open === 0) for (const resolve of this.#readers.splice(0)) resolve();
    };
  }

  /** Resolves when nothing is open, or when the signal fires. */
  async none(signal: AbortSignal): Promise<void> {
    if (this.#open === 0 || signal.aborted) return;
    await new Promise<void>((resolve) => {
      const stop = (): void => resolve();
      signal.addEventListener('abort', stop, { once: true });
      this.#readers.push(() => {
        signal.removeEventListener('abort', stop);
        resolve();
      });
    });
  }
}
