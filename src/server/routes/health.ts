import { operations } from '../../wire/api/operations.ts';
import { healthDocument } from '../../wire/rollout/health.ts';
import type { RolloutService } from '../../scheduler/rollout-service.ts';
import { addRoute, isKnown, type Routing } from '../route.ts';

/** Whoever reaches the server learns that it lives and whether it takes more; why it is paused only who may call it. */
export function healthOf(
  service: RolloutService,
  options: { readonly instanceId: string | null; readonly isKnownCaller: boolean },
): Readonly<Record<string, unknown>> {
  const { capacity, paused, isStopping } = service.admission();
  return healthDocument({
    ...{ capacity, isStopping, instanceId: options.instanceId },
    backend: service.backendHealth(),
    isPaused: paused !== null,
    pausedReason: options.isKnownCaller ? (paused?.reason ?? null) : null,
  });
}

export function addHealthRoute(routing: Routing): void {
  const { service, instanceId } = routing.parts;
  addRoute(routing, operations.health, ({ caller }) =>
    healthOf(service, { instanceId, isKnownCaller: isKnown(caller) }),
  );
}
