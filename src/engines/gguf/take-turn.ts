import type { Limiter } from '../../core/limiter.ts';

/** Waits for a place and holds it until what it gives is called; a generator cannot do its work inside a callback. */
export async function takeTurn(limiter: Limiter, signal: AbortSignal): Promise<() => void> {
  const entered = Promise.withResolvers<undefined>();
  const left = Promise.withResolvers<undefined>();
  const held = limiter.run(signal, () => {
    entered.resolve(undefined);
    return left.promise;
  });
  held.catch(entered.reject);
  await entered.promise;
  return () => left.resolve(undefined);
}
