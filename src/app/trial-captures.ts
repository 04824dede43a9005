/** Keeps the calls of each trial in a folder of that trial. */
import type { Clock } from '../core/clock.ts';
import type { Logger } from '../core/logger.ts';
import type { CallCapture, RouteCapture, WantedOfEngine } from '../gateway/capture/call-capture.ts';
import { FileCapture } from '../gateway/capture/file-capture.ts';

interface Kept {
  readonly files: FileCapture;
  /** Of the trial: replaced in what is kept, beside those of the upstream. */
  readonly secrets: readonly string[];
  route: RouteCapture | null;
}

export class TrialCaptures implements CallCapture {
  readonly #parts: { readonly clock: Clock; readonly logger: Logger };
  readonly #kept = new Map<string, Kept>();

  constructor(parts: { readonly clock: Clock; readonly logger: Logger }) {
    this.#parts = parts;
  }

  /** Before its route is opened. */
  expect(
    rolloutId: string,
    { dir, secrets }: { readonly dir: string; readonly secrets: readonly string[] },
  ): void {
    const { clock, logger } = this.#parts;
    const files = new FileCapture({ dir, clock, logger });
    this.#kept.set(rolloutId, { files, secrets, route: null });
  }

  open(rolloutId: string, secrets: readonly string[], wanted?: WantedOfEngine): RouteCapture {
    const kept = this.#kept.get(rolloutId);
    if (kept === undefined) throw new TypeError('a route of no trial');
    kept.route = kept.files.open(rolloutId, [...kept.secrets, ...secrets], wanted);
    return kept.route;
  }

  /** While the route is open. */
  async fileSoFar(rolloutId: string): Promise<string | null> {
    await this.#kept.get(rolloutId)?.route?.written();
    return await this.fileOf(rolloutId);
  }

  async fileOf(rolloutId: string): Promise<string | null> {
    return (await this.#kept.get(rolloutId)?.files.fileOf(rolloutId)) ?? null;
  }

  /** The folders are those of trials, which know what an earlier run left. */
  left(): Promise<readonly string[]> {
    return Promise.resolve([]);
  }

  async forget(rolloutId: string): Promise<void> {
    await this.#kept.get(rolloutId)?.files.forget(rolloutId);
  }

  /** Its folder is somebody else's from now on. */
  done(rolloutId: string): void {
    this.#kept.delete(rolloutId);
  }
}
