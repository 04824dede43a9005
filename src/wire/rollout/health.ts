/** Live admission figures, in `/health` of every backend. */
export interface Capacity {
  /** Rollouts that may run at once. */
  readonly max_concurrent: number;
  /** Rollouts that may wait beyond the running ones. */
  readonly max_queue_depth: number;
  /** Reservations held: from acceptance until callbacks and archive are done. */
  readonly in_flight: number;
  /** `max(0, in_flight - max_concurrent)`. */
  readonly queue_depth: number;
  readonly available: number;
  readonly accepting: boolean;
}
