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

/** `GET /health`: the backend's own fields unchanged, then ours. */
export function healthDocument(state: {
  readonly backend: Readonly<Record<string, unknown>>;
  readonly capacity: Capacity;
  /** Why nothing new is started; null = it is not paused, or the caller is not to know. */
  readonly pausedReason: string | null;
  readonly isPaused: boolean;
  readonly isStopping: boolean;
  /** null = none. */
  readonly instanceId: string | null;
}): Readonly<Record<string, unknown>> {
  return {
    ...state.backend,
    status: state.backend['status'] ?? 'ok',
    capacity: state.capacity,
    ...(state.instanceId === null ? {} : { instance_id: state.instanceId }),
    ...(state.isPaused ? { paused: true } : {}),
    ...(state.pausedReason === null ? {} : { paused_reason: state.pausedReason }),
    ...(state.isStopping ? { stopping: true } : {}),
  };
}
