import { LinkedAbort } from '../../core/linked-abort.ts';
import type {
  DestroyReceipt,
  Environment,
  EnvironmentCapabilities,
  EnvironmentProvider,
  EnvironmentSpec,
  FoundSandbox,
} from '../environment.ts';
import { openAccess } from './access/cluster-access.ts';
import { ApiClient } from './api/api-client.ts';
import { apiFailure } from './api/api-error.ts';
import { listAll } from './api/pages.ts';
import { KubernetesEnvironment } from './kubernetes-environment.ts';
import { Enforcement } from './network/enforcement.ts';
import type { KubernetesParts } from './kubernetes-parts.ts';
import {
  compileKubernetesOptions,
  kubernetesPorts,
  type CompiledKubernetesOptions,
  type KubernetesOptions,
  type KubernetesPorts,
} from './options.ts';
import { foundSandbox, ours } from './pods/names.ts';
import { PodWatch } from './pods/pod-watch.ts';
import { checkCluster } from './preflight.ts';
import { defaultDestroyMs, podPath, policiesPath, readPod, removeSandbox } from './removal.ts';

/** A creation of a dead process may still be under way at the API server: what is absent is looked for once more after this. */
const lateCreateMs = 1_000;

/** Sandboxes as pods of a Kubernetes cluster. */
export class KubernetesProvider implements EnvironmentProvider {
  readonly kind = 'kubernetes';
  readonly isolation = 'strict';
  readonly isRemote = true as const;
  readonly capabilities: EnvironmentCapabilities;
  readonly #options: CompiledKubernetesOptions;
  readonly #ports: KubernetesPorts;
  #opening: Promise<KubernetesParts> | null = null;
  #isReady = false;
  #parts: KubernetesParts | null = null;

  /** CONFIG_INVALID when the options are wrong. Touches nothing. */
  constructor(options: KubernetesOptions, ports: Partial<KubernetesPorts> = {}) {
    this.#options = compileKubernetesOptions(options);
    this.#ports = kubernetesPorts(ports);
    const { networkPolicies } = this.#options;
    this.capabilities = {
      compose: false,
      cpuLimit: true,
      memoryLimit: true,
      pidsLimit: false, // a setting of each node
      diskQuota: false, // whoever writes more is removed
      gpus: false,
      tpus: false,
      users: true,
      noNetwork: networkPolicies,
      allowlist: networkPolicies,
      dynamicNetworkPolicy: networkPolicies,
      hostEndpoint: false,
      layers: false,
      build: false,
      windows: false,
    };
  }

  async preflight(signal: AbortSignal): Promise<void> {
    if (this.#isReady) return;
    const { client } = await this.#open();
    await this.#edge({ code: 'ENVIRONMENT_UNAVAILABLE', signal, what: 'the cluster' }, () =>
      checkCluster(client, this.#options, { logger: this.#ports.logger, signal }),
    );
    this.#isReady = true;
  }

  environment(spec: EnvironmentSpec): Environment {
    if (this.#parts !== null) return new KubernetesEnvironment(spec, this.#parts);
    throw new Error('environments are made after preflight');
  }

  async destroyByName(
    name: string,
    options: { readonly deadlineMs?: number } = {},
  ): Promise<DestroyReceipt> {
    const deadlineMs = options.deadlineMs ?? defaultDestroyMs;
    const parts = await this.#open();
    using limit = new LinkedAbort([], { ms: deadlineMs, reason: () => new Error('no answer') });
    const { signal } = limit;
    const of = { code: 'ENVIRONMENT_DESTROY_FAILED', signal, what: `looking for ${name}` } as const;
    await this.#edge(of, async () => {
      const pod = await readPod(parts.client, podPath(parts.client, name), signal);
      if (pod === null) await this.#ports.clock.sleep(lateCreateMs, signal);
    });
    return await removeSandbox(parts, name, { deadlineMs });
  }

  async list(signal: AbortSignal): Promise<readonly FoundSandbox[]> {
    const { client } = await this.#open();
    const pods = `/api/v1/namespaces/${client.access.namespace}/pods`;
    const paths = [pods, ...(this.#options.networkPolicies ? [policiesPath(client)] : [])];
    const of = { code: 'ENVIRONMENT_UNAVAILABLE', signal, what: 'listing sandboxes' } as const;
    const lists = await this.#edge(of, () =>
      Promise.all(
        paths.map((each) => listAll(client, { path: each, labelSelector: ours }, signal)),
      ),
    );
    const found = lists.flatMap(({ items }) => items.map(foundSandbox));
    return [
      ...new Map(found.flatMap((each) => (each === null ? [] : [[each.name, each]]))).values(),
    ];
  }

  async close(): Promise<void> {
    const parts = await this.#opening?.catch(() => null);
    await parts?.watch.close();
    await parts?.client.close();
  }

  #open(): Promise<KubernetesParts> {
    this.#opening ??= this.#openOnce().catch((error: unknown) => {
      this.#opening = null; // the next call looks again: the file may have been corrected
      throw error;
    });
    return this.#opening;
  }

  async #openOnce(): Promise<KubernetesParts> {
    const access = await openAccess(this.#options, this.#ports);
    const client = new ApiClient(access, this.#ports);
    const watch = new PodWatch(client, access.namespace, this.#ports);
    const enforcement = new Enforcement(this.#ports.clock);
    this.#parts = { client, watch, enforcement, options: this.#options, ports: this.#ports };
    return this.#parts;
  }

  async #edge<T>(
    of: {
      readonly code: 'ENVIRONMENT_UNAVAILABLE' | 'ENVIRONMENT_DESTROY_FAILED';
      readonly signal: AbortSignal;
      readonly what: string;
    },
    work: () => Promise<T>,
  ): Promise<T> {
    try {
      return await work();
    } catch (error) {
      of.signal.throwIfAborted();
      throw apiFailure(error, { code: of.code, phase: 'environment', what: of.what });
    }
  }
}
