/** A fake cluster on real sandboxes of this machine, and a provider for it. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { never } from '../../../src/core/linked-abort.ts';
import { KubernetesProvider } from '../../../src/environments/kubernetes/kubernetes-provider.ts';
import type {
  KubernetesOptions,
  KubernetesPorts,
} from '../../../src/environments/kubernetes/options.ts';
import { LocalBench } from '../../environments/local/local-bench.ts';
import { SandboxHost, type SandboxHostOptions } from '../sandbox-host/sandbox-host.ts';
import { FakeCluster, type FakeClusterOptions } from './fake-cluster.ts';

export class ClusterBench implements AsyncDisposable {
  readonly cluster: FakeCluster;
  readonly host: SandboxHost;
  readonly kubeconfig: string;
  readonly #folder: string;
  readonly #local: LocalBench | null;

  private constructor(
    parts: { readonly cluster: FakeCluster; readonly host: SandboxHost },
    local: LocalBench | null,
  ) {
    this.cluster = parts.cluster;
    this.host = parts.host;
    this.#local = local;
    this.#folder = mkdtempSync(path.join(tmpdir(), 'slipway-kubeconfig-'));
    this.kubeconfig = path.join(this.#folder, 'config');
    writeFileSync(this.kubeconfig, parts.cluster.kubeconfig());
  }

  /** `light`: sandboxes that are nothing. */
  static async open(
    options: Omit<FakeClusterOptions, 'host'> & {
      readonly light?: boolean;
      readonly host?: Partial<SandboxHostOptions>;
    } = {},
  ): Promise<ClusterBench> {
    const { light = false, host: hostOptions = {}, ...rest } = options;
    const local = light || hostOptions.sandboxes !== undefined ? null : new LocalBench();
    const provider = local?.provider({ runtime: 'runc' }) ?? null;
    await provider?.preflight(never);
    const host = new SandboxHost({ sandboxes: provider ?? {}, ...hostOptions });
    return new ClusterBench({ cluster: await FakeCluster.open({ ...rest, host }), host }, local);
  }

  provider(
    options: KubernetesOptions = {},
    ports: Partial<KubernetesPorts> = {},
  ): KubernetesProvider {
    return new KubernetesProvider({ kubeconfig: this.kubeconfig, ...options }, ports);
  }

  /** Names of objects in the cluster, and what the host has of them. */
  leftovers(): readonly string[] {
    const { pods, networkpolicies } = this.cluster.stores;
    return [
      ...pods.list().map(({ metadata }) => `pod ${metadata.name}`),
      ...networkpolicies.list().map(({ metadata }) => `policy ${metadata.name}`),
      ...this.host.list().map(({ id }) => `sandbox ${id}`),
      ...(this.#local?.leftovers() ?? []),
    ];
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.cluster[Symbol.asyncDispose]();
    await this.host[Symbol.asyncDispose]();
    this.#local?.[Symbol.dispose]();
    rmSync(this.#folder, { recursive: true, force: true });
  }
}
