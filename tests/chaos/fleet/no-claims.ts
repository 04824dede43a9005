/** What keeps a rollout to one host, broken on purpose: the controls of fleets. */
import type { ClaimBook } from '../../../src/scheduler/jetstream/claims.ts';
import type { FleetHost } from '../../../src/scheduler/jetstream/fleet-host.ts';
import { Placement } from '../../../src/scheduler/jetstream/placement.ts';

/** Whoever asks has it. */
export const everyonesOwn: ClaimBook = {
  claim: (claim) => Promise.resolve({ kind: 'ours', held: { claim, revision: 0 } }),
  begin: ({ claim, revision }) =>
    Promise.resolve({ claim: { ...claim, hasBegun: true }, revision }),
  forget: () => Promise.resolve(),
};

/** Every host that says it has the lease is told what to do, not the first alone. */
export class SharedPlacement extends Placement {
  #last: FleetHost | null = null;

  override get host(): FleetHost | null {
    return this.#last ?? super.host;
  }

  override take(host: FleetHost): boolean {
    if (super.take(host)) return true;
    this.#last = host;
    const { lease, execution } = this;
    if (execution !== null) host.tell({ kind: 'execute', lease, request: execution.request });
    return true;
  }
}
