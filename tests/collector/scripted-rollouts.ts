/** Rollouts that end when and how a test says, and what a collector is made of around them. */
import { setImmediate as turn } from 'node:timers/promises';
import { systemClock } from '../../src/core/clock.ts';
import { silentLogger } from '../../src/core/logger.ts';
import { defaultCauses } from '../../src/collector/cause-policy.ts';
import type { CollectorParts } from '../../src/collector/collector-parts.ts';
import type { DatasetRow } from '../../src/collector/dataset/dataset-row.ts';
import type { CollectorEvent } from '../../src/collector/events.ts';
import { collectorBegin, GroupSource } from '../../src/collector/group-source.ts';
import type { MemberEnd, MemberRequest } from '../../src/collector/member.ts';
import { compileCollectorOptions, type CollectorOptions } from '../../src/collector/options.ts';
import type { RolloutPort } from '../../src/collector/rollout-port.ts';

export const success: MemberEnd = {
  ...{ status: 'completed', fault: null, cause: null, message: null, isRetryable: false },
  ...{ reward: 1, samples: [], metadata: {} },
};
export const lost: MemberEnd = {
  ...{ ...success, status: 'failed', fault: 'infrastructure', cause: 'ENVIRONMENT_LOST' },
  ...{ isRetryable: true, reward: null },
};
export const aborted: MemberEnd = {
  ...{ ...success, status: 'aborted', fault: 'cancelled', cause: 'CANCELLED' },
  ...{ isRetryable: true, reward: null },
};

interface Running {
  readonly request: MemberRequest;
  readonly end: (end: MemberEnd) => void;
}

/** `script` answers an end at once, or null for a rollout that runs until `end` is called or its signal fires. */
export class ScriptedRollouts implements RolloutPort {
  readonly requests: MemberRequest[] = [];
  readonly running = new Map<string, Running>();
  readonly #script: (request: MemberRequest) => MemberEnd | null;
  /** Rollouts that do not even hear their signal. */
  isDeaf = false;
  /** Rollouts whose signal has fired. */
  readonly stopped: string[] = [];

  constructor(script: (request: MemberRequest) => MemberEnd | null = () => null) {
    this.#script = script;
  }

  async run(request: MemberRequest, signal: AbortSignal): Promise<MemberEnd> {
    this.requests.push(request);
    const told = this.#script(request);
    if (told !== null) {
      await turn();
      return told;
    }
    const { promise, resolve } = Promise.withResolvers<MemberEnd>();
    this.running.set(request.rolloutId, { request, end: resolve });
    const stop = (): void => {
      this.stopped.push(request.rolloutId);
      if (!this.isDeaf) resolve(aborted);
    };
    signal.addEventListener('abort', stop, { once: true });
    const end = await promise;
    this.running.delete(request.rolloutId);
    return end;
  }

  close(): Promise<void> {
    return Promise.resolve();
  }

  /** Ends every rollout that runs and for which `which` is true. */
  async end(
    end: MemberEnd,
    which: (request: MemberRequest) => boolean = () => true,
  ): Promise<void> {
    for (const running of [...this.running.values()]) if (which(running.request)) running.end(end);
    await settle();
  }
}

/** Whatever can go on without time passing has gone on. */
export async function settle(): Promise<void> {
  for (let turns = 0; turns < 12; turns += 1) await turn();
}

export function rows(count: number): readonly Omit<DatasetRow, 'epoch'>[] {
  return Array.from({ length: count }, (_, rowIndex) => ({
    ...{ rowIndex, label: String(rowIndex), metadata: {} },
    messages: [{ role: 'user', content: `row ${rowIndex}` }],
  }));
}

export interface Scene extends CollectorParts {
  readonly events: CollectorEvent[];
}

export function scene(
  options: CollectorOptions,
  parts: Partial<CollectorParts> & { readonly rowCount?: number } = {},
): Scene {
  const { rowCount = 100, ...given } = parts;
  const events: CollectorEvent[] = [];
  const compiled = compileCollectorOptions({ refillPauseMs: 0, ...options });
  return {
    options: compiled,
    source: new GroupSource(rows(rowCount), {
      ...{ groupSize: compiled.groupSize, shuffleSeed: null, epochs: null, from: collectorBegin },
    }),
    rollouts: new ScriptedRollouts(),
    ...{ fleet: null, findHook: null, hooks: {}, causes: defaultCauses },
    weightVersion: () => null,
    ...{ clock: systemClock, logger: silentLogger },
    observe: (event) => void events.push(event),
    events,
    ...given,
  };
}
