import os from 'node:os';
import path from 'node:path';
import type { ExecutionBackend } from '../../backends/execution-backend.ts';
import type { ServeConfig } from '../../config/serve/read-serve-config.ts';
import type { SecretSources } from '../../config/serve/read-secrets.ts';
import type { Logger } from '../../core/logger.ts';
import type { Scope } from '../../core/scope.ts';
import type { GatewayControl } from '../../gateway/gateway-control.ts';
import { FleetFront, type FleetFrontParts } from '../../scheduler/jetstream/fleet-front.ts';
import { FleetBackend, FleetGateway } from '../../scheduler/jetstream/fleet-ports.ts';
import type { HostPlaces } from '../../scheduler/scheduler-parts.ts';
import type { RolloutStore } from '../../store/rollout-store.ts';
import type { SecretMask } from '../../telemetry/secret-mask.ts';
import { isTerminal } from '../../wire/rollout/rollout-state.ts';
import type { AppPorts } from '../ports.ts';
import { openBus } from './open-bus.ts';

export interface OpenedFront {
  readonly backend: ExecutionBackend;
  readonly gateway: GatewayControl;
  readonly hosts: HostPlaces;
  /** After the recovery. Never rejects. */
  sweep(store: RolloutStore): Promise<void>;
}

/** The hosts of the queue in the place of a backend and a gateway. Closed with `scope`. */
export async function openFront(
  config: ServeConfig,
  parts: {
    readonly ports: AppPorts;
    readonly logger: Logger;
    readonly sources: SecretSources;
    readonly mask: SecretMask;
    readonly scope: Scope;
  } & Pick<FleetFrontParts, 'makePlacement'>,
): Promise<OpenedFront> {
  const { ports, logger, sources, mask, scope, makePlacement } = parts;
  const bus = await openBus(config, { sources, mask, name: `slipway serve ${os.hostname()}` });
  scope.defer(() => bus.close());
  const front = await FleetFront.open(
    bus,
    {
      ...{ version: ports.version, leaseMs: config.queue.leaseMs },
      backendKind: config.backend.kind,
      filesDir: path.join(config.dataDir, 'host-files'),
    },
    { clock: ports.clock, logger, ...(makePlacement !== undefined && { makePlacement }) },
  );
  scope.defer(() => front.close());
  return {
    backend: new FleetBackend(config.backend.kind, front),
    gateway: new FleetGateway(front),
    hosts: front,
    async sweep(store) {
      const { live } = await store.recover();
      const ids = new Set(live.filter(({ state }) => !isTerminal(state)).map(({ id }) => id));
      await front.sweep((id) => ids.has(id));
    },
  };
}
