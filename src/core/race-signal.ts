/** The outcome of `promise`, or the reason of `signal` when it fires first; nobody is told then what becomes of the promise. */
export async function raceSignal<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  promise.catch(() => undefined);
  signal.throwIfAborted();
  const leave = Promise.withResolvers<never>();
  const onAbort = (): void => leave.reject(signal.reason as Error);
  signal.addEventListener('abort', onAbort, { once: true });
  try {
    return await Promise.race([promise, leave.promise]);
  } finally {
    signal.removeEventListener('abort', onAbort);
  }
}
