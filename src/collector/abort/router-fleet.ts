/** The engines behind a router, or a list of them. What a router lists may change: every abort asks again, and a client that was opened stays open. */
import { discoverWorkers } from '../../engines/sglang/router.ts';
import type { Engine, EngineKind, EngineOpener } from '../../engines/engine.ts';
import type { EngineFleet, FleetEngine } from './engine-fleet.ts';

export interface RouterFleetOptions {
  /** null = the engines are those of `engineUrls`. */
  readonly routerUrl: string | null;
  readonly engineUrls: readonly string[];
  readonly kind: EngineKind;
  readonly apiKey: string | null;
  readonly open: EngineOpener;
}

export class RouterFleet implements EngineFleet {
  readonly #options: RouterFleetOptions;
  readonly #engines = new Map<string, Promise<Engine>>();

  constructor(options: RouterFleetOptions) {
    this.#options = options;
  }

  async discover(signal: AbortSignal): Promise<readonly FleetEngine[]> {
    const { routerUrl, engineUrls, apiKey } = this.#options;
    const found = routerUrl === null ? [] : await discoverWorkers(routerUrl, { apiKey, signal });
    const urls = [...new Set([...found, ...engineUrls])];
    return await Promise.all(urls.map((url) => this.#engine(url)));
  }

  async close(): Promise<void> {
    const opened = await Promise.allSettled(this.#engines.values());
    const engines = opened.flatMap((each) => (each.status === 'fulfilled' ? [each.value] : []));
    this.#engines.clear();
    await Promise.all(engines.map((engine) => engine.close()));
  }

  #engine(baseUrl: string): Promise<Engine> {
    const { kind, apiKey, open } = this.#options;
    const known = this.#engines.get(baseUrl) ?? open({ kind, baseUrl, apiKey });
    this.#engines.set(baseUrl, known);
    // One that could not be opened is tried again by the next abort.
    known.catch(() => this.#engines.delete(baseUrl));
    return known;
  }
}
