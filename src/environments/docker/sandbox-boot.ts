import type { NetworkPolicy } from '../../wire/network-policy.ts';
import type { ImageRequest } from './images/docker-images.ts';

/** How a sandbox comes up: one container made through the engine, or a compose project. */
export interface SandboxBoot {
  readonly hostEndpointUrl: string | null;

  /** Gets the images. Abortable at any point. */
  prepare(request: ImageRequest): Promise<void>;
  /**
   * Creates and starts everything; resolves with the id of the main container. `abandoned` is looked at between steps: a call that
   * was sent is always awaited, so that when this settles nothing can still come into being.
   */
  boot(abandoned: AbortSignal): Promise<string>;
  setNetworkPolicy(policy: NetworkPolicy, signal: AbortSignal): Promise<void>;
  /** Id of a side service's container. SERVICE_UNSUPPORTED when there is none. */
  serviceContainer(name: string, signal: AbortSignal): Promise<string>;
  /** Every container of the sandbox, by id or name. */
  containers(signal: AbortSignal): Promise<readonly string[]>;
  /** Ends what this process holds for the sandbox (listeners). Idempotent. */
  release(): Promise<void>;
}
