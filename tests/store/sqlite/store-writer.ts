/** A process that accepts and begins rollouts as fast as it can, prints the id of each once it is durable, and ends only by being killed. */
import { openStore } from './opening.ts';

const [folder, request = '{}'] = process.argv.slice(2);
const store = await openStore(folder!);
console.log('open');
await Promise.all(
  Array.from({ length: 16 }, async (_, writer) => {
    for (let index = 0; ; index += 1) {
      const id = `r-${writer}-${index}`;
      const now = new Date();
      await store.accept({ id, tenant: 'default', request, digest: id, acceptedAt: now });
      await store.change({
        id,
        from: ['queued'],
        set: { state: 'running', hasAgentBegun: true, startedAt: now },
        events: [
          { rolloutId: id, tenant: 'default', type: 'rollout:started', at: now, payload: {} },
        ],
      });
      console.log(id);
    }
  }),
);
