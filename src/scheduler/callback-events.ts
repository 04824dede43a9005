import { messageOf } from '../core/errors.ts';
import type { DeliveryEnd } from '../callbacks/callback-delivery.ts';
import type { SchedulerCore } from './scheduler-core.ts';

/** Ends of callbacks as events of their rollout; answers how to stop. A crash may lose the last ones: the deliveries themselves know. */
export function noteCallbackEnds(core: SchedulerCore): () => void {
  const { callbacks, logger } = core.parts;
  return callbacks.onEnd((end) => {
    note(end, core).catch((error: unknown) =>
      logger.log('debug', 'the end of a callback was not noted', {
        ...{ rolloutId: end.delivery.rolloutId, error: messageOf(error) },
      }),
    );
  });
}

async function note({ delivery, result }: DeliveryEnd, core: SchedulerCore): Promise<void> {
  const { store, clock } = core.parts;
  const { rolloutId, channel, attempts } = delivery;
  const at = clock.now();
  const tenant =
    core.live.get(rolloutId)?.tenant ?? (await store.rollout(rolloutId))?.tenant ?? null;
  if (tenant === null) return;
  const payload = { channel, attempts };
  await store.note([{ rolloutId, tenant, type: `callback:${result}`, at, payload }]);
}
