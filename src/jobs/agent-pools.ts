/** Agents with `n_concurrent` share a pool of places; a trial holds one while its agent runs. */
import { createHash } from 'node:crypto';
import { canonicalJson } from '../core/canonical-json.ts';
import { RolloutError } from '../core/errors.ts';
import { Limiter } from '../core/limiter.ts';
import type { AgentConfig } from '../wire/harbor/run-config.ts';

export type AdmitAgent = (signal: AbortSignal) => Promise<() => void>;

export class AgentPools {
  readonly #pools = new Map<string, { readonly limit: number; readonly places: Limiter }>();

  /** CONFIG_INVALID when two agents give one pool different sizes. */
  constructor(agents: readonly AgentConfig[]) {
    agents.forEach((agent, index) => {
      if (agent.n_concurrent === null) return;
      const key = poolKey(agent);
      const known = this.#pools.get(key);
      if (known !== undefined && known.limit !== agent.n_concurrent)
        throw new RolloutError(
          'CONFIG_INVALID',
          `one agent pool has the sizes ${known.limit} and ${agent.n_concurrent}`,
          {
            phase: 'config',
            field: `agents[${index}].n_concurrent`,
            remedy: 'Give every agent of one concurrency_group the same n_concurrent.',
          },
        );
      this.#pools.set(key, { limit: agent.n_concurrent, places: new Limiter(agent.n_concurrent) });
    });
  }

  /** undefined for an agent without a pool. */
  admission(agent: AgentConfig): AdmitAgent | undefined {
    const pool = agent.n_concurrent === null ? undefined : this.#pools.get(poolKey(agent));
    return pool && ((signal) => takePlace(pool.places, signal));
  }
}

async function takePlace(places: Limiter, signal: AbortSignal): Promise<() => void> {
  return await new Promise<() => void>((resolve, reject) => {
    const hold = (): Promise<unknown> => {
      const held = Promise.withResolvers<null>();
      resolve(() => held.resolve(null));
      return held.promise;
    };
    places.run(signal, hold).catch(reject);
  });
}

function poolKey(agent: AgentConfig): string {
  if (agent.concurrency_group !== null) return `group:${agent.concurrency_group}`;
  const identity = { ...agent, n_concurrent: null, concurrency_group: null };
  return `agent:${createHash('sha256').update(canonicalJson(identity)).digest('hex')}`;
}
