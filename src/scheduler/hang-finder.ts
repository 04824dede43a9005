import type { ExecutionBackend, ExecutionProbe } from '../backends/execution-backend.ts';
import type { CallbackDelivery } from '../callbacks/callback-delivery.ts';
import type { Clock } from '../core/clock.ts';
import { LinkedAbort } from '../core/linked-abort.ts';
import type { Diagnosis } from '../wire/rollout/diagnosis.ts';
import { diagnoseRollout, diagnoseServer, type DiskFacts } from './diagnosis.ts';
import type { Caller, RolloutService } from './rollout-service.ts';

/** A look at a sandbox may hang as the sandbox does; the answer comes without it then. */
const probeMs = 2_000;

export interface HangFinderParts {
  readonly service: Pick<RolloutService, 'inspect' | 'admission'>;
  readonly delivery: Pick<CallbackDelivery, 'activity'>;
  readonly backend: Pick<ExecutionBackend, 'probe'>;
  /** null = it cannot be told. */
  readonly disk: () => Promise<DiskFacts | null>;
  readonly clock: Clock;
}

/** Gathers what is known about a rollout that does not move, and says what holds it up. Changes nothing. */
export class HangFinder {
  readonly #parts: HangFinderParts;

  constructor(parts: HangFinderParts) {
    this.#parts = parts;
  }

  /** null = the caller may not see such a rollout. Answers within about 2 s, whatever hangs. */
  async diagnose(id: string, caller: Caller): Promise<Diagnosis | null> {
    const { service, delivery, clock } = this.#parts;
    const view = await service.inspect(id, caller);
    if (view === null) return null;
    const [disk, probe] = await Promise.all([this.#disk(), this.#probe(id)]);
    return diagnoseRollout({
      ...{ view, disk, probe },
      delivery: delivery.activity(id),
      admission: service.admission(),
      now: clock.now(),
    });
  }

  /** What holds up every rollout, also those that are refused and so have no view; empty = nothing. */
  async diagnoseServer(): Promise<readonly Diagnosis[]> {
    const { service, clock } = this.#parts;
    const disk = await this.#disk();
    return diagnoseServer({ disk, admission: service.admission(), now: clock.now() });
  }

  async #disk(): Promise<DiskFacts | null> {
    return await this.#parts.disk().catch(() => null);
  }

  async #probe(id: string): Promise<ExecutionProbe | null> {
    const { backend } = this.#parts;
    if (backend.probe === undefined) return null;
    using limit = new LinkedAbort([], { ms: probeMs, reason: () => new Error('no answer') });
    const late = new Promise<null>((resolve) => {
      limit.signal.addEventListener('abort', () => resolve(null), { once: true });
    });
    return await Promise.race([backend.probe(id, limit.signal).catch(() => null), late]);
  }
}
