/** `POST /rollout/cancel`. */
export type CancelSelector =
  | { readonly kind: 'ids'; readonly ids: readonly string[] }
  | { readonly kind: 'prefix'; readonly prefix: string }
  | { readonly kind: 'all' };

export type CancelDisposition = 'cancelled_queued' | 'cancelled_running' | 'not_found';
