/** How a rollout's agent reaches its model: our address and our key. Neither is the controller's. */
export interface ModelRoute {
  /** What `/chat/completions` is appended to, from a process on this host. */
  readonly baseUrl: string;
  /** Dies with the rollout. */
  readonly apiKey: string;
}
