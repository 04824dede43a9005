/**
 * `slipway serve` that counts for itself what its admission gave away, and says at its end whether the figures that it showed were those; what is executed is noted apart.
 * `FLOOD_VARIANT` breaks it on purpose: `loose` checks the limit some milliseconds before it takes a place, `unweighted` forgets weights.
 */
import { Command } from 'commander';
import { composeApp } from '../../../src/app/compose.ts';
import { startServer } from '../../../src/app/serve.ts';
import { takePrecedence } from '../../../src/app/serve/processor-share.ts';
import { addServeOptions, serveFlags } from '../../../src/cli/serve-options.ts';
import { readServeConfig } from '../../../src/config/serve/read-serve-config.ts';
import { never } from '../../../src/core/linked-abort.ts';
import { Admission, type Reservation } from '../../../src/scheduler/admission.ts';
import { JetStreamQueue } from '../../../src/scheduler/jetstream/jetstream-queue.ts';
import { MemoryQueue } from '../../../src/scheduler/memory/memory-queue.ts';
import { Tenants } from '../../../src/scheduler/tenants.ts';
import type { Lease, QueueEntry, RolloutQueue } from '../../../src/scheduler/queue.ts';
import type { Capacity } from '../../../src/wire/rollout/health.ts';
import { noteExecutions } from './execution-sights.ts';
import { tenantWeights, type ServerCounts } from './flood.ts';

const counts = { held: 0 };
const seen: { -readonly [Name in keyof ServerCounts]: ServerCounts[Name] } = {
  ...{ capacityReads: 0, mismatches: 0, mostHeld: 0, mostQueued: 0 },
  contestedStarts: { a: 0, b: 0, c: 0 },
};
/** Methods themselves: what replaces them calls them with its own `this`. */
const method = (of: object, name: string): unknown => Reflect.get(of, name);
const force = method(Admission.prototype, 'force') as (
  this: Admission,
  tenant: string,
) => Reservation;
const capacity = method(Admission.prototype, 'capacity') as (
  this: Admission,
  isAccepting: boolean,
) => Capacity;
Admission.prototype.force = function (tenant): Reservation {
  const reservation = force.call(this, tenant);
  counts.held += 1;
  seen.mostHeld = Math.max(seen.mostHeld, counts.held);
  return {
    release: () => {
      counts.held -= 1;
      reservation.release();
    },
    giveBack: () => {
      counts.held -= 1;
      reservation.giveBack();
    },
  };
};

Admission.prototype.capacity = function (isAccepting) {
  const shown = capacity.call(this, isAccepting);
  seen.capacityReads += 1;
  if (shown.in_flight !== counts.held) seen.mismatches += 1;
  return shown;
};

for (const { prototype } of [MemoryQueue, JetStreamQueue]) {
  const put = method(prototype, 'put') as (this: RolloutQueue, entry: QueueEntry) => Promise<void>;
  const take = method(prototype, 'take') as (this: RolloutQueue) => Promise<Lease | null>;
  prototype.put = async function (entry) {
    await put.call(this, entry);
    seen.mostQueued = Math.max(seen.mostQueued, this.counts().queued);
  };
  prototype.take = async function () {
    const isContested = Object.keys(tenantWeights).every((name) => this.counts(name).queued > 0);
    const lease = await take.call(this);
    if (isContested && lease !== null) seen.contestedStarts[lease.entry.tenant]! += 1;
    return lease;
  };
}

noteExecutions();

/** By how many requests the broken check is late, however fast they come. */
const staleAsks = 32;
if (process.env['FLOOD_VARIANT'] === 'loose') {
  let [asks, known] = [0, 0];
  Admission.prototype.tryReserve = function (tenant) {
    if (asks % staleAsks === 0) known = counts.held;
    asks += 1;
    const { max_concurrent, max_queue_depth } = capacity.call(this, true);
    return known < max_concurrent + max_queue_depth ? this.force(tenant) : null;
  };
}
if (process.env['FLOOD_VARIANT'] === 'unweighted') Tenants.prototype.weight = () => 1;

const command = addServeOptions(new Command().option('--json'));
command.parse(process.argv);
const ports = await composeApp(process.env, process.cwd());
const config = await readServeConfig(serveFlags(command), ports.machine);
takePrecedence();
const server = await startServer(config, { ports, signal: never });
const { controlUrl, dataUrls, recovered } = server;
process.once('SIGTERM', () => {
  void server.stop(never).then(() => console.log(JSON.stringify({ counts: seen })));
});
console.log(JSON.stringify({ url: controlUrl, data_url: dataUrls[0], recovered }));
