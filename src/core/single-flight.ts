import { LinkedAbort } from './linked-abort.ts';

interface Flight<T> {
  readonly promise: Promise<T>;
  readonly abort: LinkedAbort;
  waiters: number;
}

/**
 * Runs one piece of work per key however many ask for it. The work is aborted only when every asker has gone;
 * an asker whose own signal fires leaves at once and does not disturb the others.
 */
export class SingleFlight<T> {
  readonly #flights = new Map<string, Flight<T>>();

  async run(
    key: string,
    signal: AbortSignal,
    work: (signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    signal.throwIfAborted();
    const flight = this.#flights.get(key) ?? this.#start(key, work);
    flight.waiters += 1;
    const leave = Promise.withResolvers<never>();
    const onAbort = (): void => leave.reject(signal.reason as Error);
    signal.addEventListener('abort', onAbort, { once: true });
    try {
      return await Promise.race([flight.promise, leave.promise]);
    } finally {
      signal.removeEventListener('abort', onAbort);
      flight.waiters -= 1;
      if (flight.waiters === 0) {
        if (this.#flights.get(key) === flight) this.#flights.delete(key);
        flight.abort.abort(signal.reason);
      }
    }
  }

  #start(key: string, work: (signal: AbortSignal) => Promise<T>): Flight<T> {
    const abort = new LinkedAbort([]);
    const promise = work(abort.signal).finally(() => {
      if (this.#flights.get(key) === flight) this.#flights.delete(key);
    });
    promise.catch(() => undefined); // every asker gets the failure; with none left it is nobody's
    const flight: Flight<T> = { promise, abort, waiters: 0 };
    this.#flights.set(key, flight);
    return flight;
  }
}
