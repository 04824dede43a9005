/** What the process of the agents is told, and what it tells. */

/** As the server prints it. */
export interface RouteLine {
  readonly rolloutId: string;
  readonly baseUrl: string;
  readonly apiKey: string;
}

export type ToAgents =
  | { readonly kind: 'begin'; readonly route: RouteLine }
  /** The rollout is being ended: its stream may break from now on. */
  | { readonly kind: 'ending'; readonly rolloutId: string }
  /** The server says that it has ended. */
  | { readonly kind: 'ended'; readonly rolloutId: string }
  | { readonly kind: 'report' };

export interface AgentsReport {
  /** Streams that are open now. */
  readonly open: number;
  readonly streams: number;
  readonly events: number;
  /** What went wrong with a rollout that nobody had ended. */
  readonly errors: readonly string[];
  /** Rollouts of which the server said that they have ended and whose stream went on for longer than a moment. */
  readonly outlived: readonly string[];
  /** From the writing of an event upstream to its reading. */
  readonly delayMs: { readonly p50: number; readonly p99: number };
}
