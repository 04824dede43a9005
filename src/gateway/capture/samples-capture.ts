import type { CallCapture, RouteCapture, WantedOfEngine } from './call-capture.ts';

/** Keeps the calls that samples are made of, and no others. */
export class SamplesCapture implements CallCapture {
  readonly #capture: CallCapture;

  constructor(capture: CallCapture) {
    this.#capture = capture;
  }

  open(
    rolloutId: string,
    secrets: readonly string[],
    wanted?: WantedOfEngine,
  ): RouteCapture | null {
    return wanted === undefined ? null : this.#capture.open(rolloutId, secrets, wanted);
  }

  async fileOf(rolloutId: string): Promise<string | null> {
    return await this.#capture.fileOf(rolloutId);
  }

  async left(): Promise<readonly string[]> {
    return await this.#capture.left();
  }

  async forget(rolloutId: string): Promise<void> {
    await this.#capture.forget(rolloutId);
  }
}
