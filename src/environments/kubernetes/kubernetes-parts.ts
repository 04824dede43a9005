import type { Enforcement } from './network/enforcement.ts';
import type { ApiClient } from './api/api-client.ts';
import type { CompiledKubernetesOptions, KubernetesPorts } from './options.ts';
import type { PodWatch } from './pods/pod-watch.ts';

/** What all sandboxes of one cluster share. */
export interface KubernetesParts {
  readonly client: ApiClient;
  readonly watch: PodWatch;
  readonly enforcement: Enforcement;
  readonly options: CompiledKubernetesOptions;
  readonly ports: KubernetesPorts;
}
