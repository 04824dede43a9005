import type { ExecutionBackend, ExecutionProbe } from '../backends/execution-backend.ts';
import type { CallbackDelivery } from '../callbacks/callback-delivery.ts';
import type { Clock } from '../core/clock.ts';
import { LinkedAbort } from '../core/linked-abort.ts';
import type { GatewayControl, UpstreamProbe } from '../gateway/gateway-control.ts';
import type { Diagnosis } from '../wire/rollout/diagnosis.ts';
import { diagnoseRollout, diagnoseServer, type DiskFacts } from './diagnosis.ts';
import type { Caller, RolloutService, RolloutView } from './rollout-service.ts';

/** A look at a sandbox may hang as the sandbox does; the answer comes without it then. */
const probeMs = 2_000;
/** An engine that answers nothing for so long is silent. */
const upstreamMs = 1_500;

export interface HangFinderParts {
  readonly service: Pick<RolloutService, 'inspect' | 'admission'>;
  readonly delivery: Pick<CallbackDelivery, 'activity'>;
  readonly backend: Pick<ExecutionBackend, 'probe'>;
  readonly gateway: Pick<GatewayControl, 'probe'>;
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
    const [disk, probe, upstream] = await Promise.all([
      this.#disk(),
      this.#probe(id),
      this.#upstream(view),
    ]);
    return diagnoseRollout({
      ...{ view, disk, probe, upstream },
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
    return await inTime(probeMs, async (signal) => (await backend.probe?.(id, signal)) ?? null);
  }

  /** Only where a call waits for its first byte: nothing else tells an engine that is busy from one that is dead. */
  async #upstream({ rollout, calls }: RolloutView): Promise<UpstreamProbe | null> {
    const { gateway } = this.#parts;
    if (calls?.waiting?.bytes !== 0) return null;
    return await inTime(upstreamMs + probeMs, async (signal) => {
      using limit = new LinkedAbort([signal], { ms: upstreamMs, reason: noAnswer });
      return (await gateway.probe?.(rollout.id, limit.signal)) ?? null;
    });
  }
}

/** null = it took longer, whatever the work makes of its signal, or failed. */
async function inTime<T>(
  ms: number,
  work: (signal: AbortSignal) => Promise<T | null>,
): Promise<T | null> {
  using limit = new LinkedAbort([], { ms, reason: noAnswer });
  const late = new Promise<null>((resolve) => {
    limit.signal.addEventListener('abort', () => resolve(null), { once: true });
  });
  return await Promise.race([work(limit.signal).catch(() => null), late]);
}

function noAnswer(): Error {
  return new Error('no answer');
}
