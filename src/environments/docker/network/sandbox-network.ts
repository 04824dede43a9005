/**
 * A sandbox's own internal network: a small subnet, our egress proxy and the forwarder to the host endpoint on its gateway address,
 * the rest of the host closed where we may. Nothing leads out of it but those two listeners, which belong to this
 * process: when it dies, the sandbox has no network.
 */
import type { Logger } from '../../../core/logger.ts';
import { RolloutError } from '../../../core/errors.ts';
import type { NetworkPolicy } from '../../../wire/network-policy.ts';
import type { HostEndpoint, SandboxLabels } from '../../environment.ts';
import { EgressProxy, type ResolveName } from '../../shared/egress-proxy.ts';
import { EndpointForwarder } from '../../shared/endpoint-forwarder.ts';
import type { EngineClient } from '../engine/engine-client.ts';
import { EngineError, engineFailure } from '../engine/engine-error.ts';
import { bridgeName, engineLabels } from '../sandbox-names.ts';
import { closeHostTo } from './gateway-firewall.ts';
import { isTakenHere, subnetsOf, type Subnet } from './subnets.ts';

export interface SandboxNetworkOptions {
  readonly engine: EngineClient;
  readonly logger: Logger;
  readonly sandbox: string;
  readonly labels: SandboxLabels;
  readonly pool: string;
  /** Length of the subnet's prefix: 29 for one container, 26 for a compose project. */
  readonly prefix: number;
  readonly resolveName: ResolveName | null;
  readonly allowLocalEgress: boolean;
}

export class SandboxNetwork {
  readonly #options: SandboxNetworkOptions;
  #proxy: EgressProxy | null = null;
  #forwarder: EndpointForwarder | null = null;
  #proxyUrl: string | null = null;
  #endpointUrl: string | null = null;
  #gateway = '';

  constructor(options: SandboxNetworkOptions) {
    this.#options = options;
  }

  /** The network's name in the engine: the sandbox's. */
  get name(): string {
    return this.#options.sandbox;
  }

  get hostEndpointUrl(): string | null {
    return this.#endpointUrl;
  }

  /** Variables that lead programs to the proxy, but straight to the named neighbours; empty without a proxy. */
  variables(neighbours: readonly string[] = []): Readonly<Record<string, string>> {
    const url = this.#proxyUrl;
    if (url === null) return {};
    const direct = ['localhost', '127.0.0.1', '::1', this.#gateway, ...neighbours].join(',');
    const both = { HTTP_PROXY: url, HTTPS_PROXY: url, ALL_PROXY: url, NO_PROXY: direct };
    const lower = Object.entries(both).map(([key, value]) => [key.toLowerCase(), value]);
    return { ...both, ...(Object.fromEntries(lower) as Record<string, string>) };
  }

  /** Creates the network in the engine and listens on its gateway. */
  async open(use: {
    readonly policy: NetworkPolicy;
    readonly wantsProxy: boolean;
    readonly hostEndpoint: HostEndpoint | null;
  }): Promise<void> {
    const subnet = await this.#create();
    this.#gateway = subnet.gateway;
    const ports: number[] = [];
    const at = { host: subnet.gateway, port: 0 };
    try {
      if (use.wantsProxy) {
        const { resolveName, allowLocalEgress } = this.#options;
        this.#proxy = new EgressProxy({
          policy: use.policy,
          allowLocal: allowLocalEgress,
          ...(resolveName === null ? {} : { resolveName }),
        });
        const port = (await this.#proxy.listen(at)).port ?? 0;
        this.#proxyUrl = `http://${subnet.gateway}:${port}`;
        ports.push(port);
      }
      if (use.hostEndpoint !== null) {
        this.#forwarder = new EndpointForwarder(use.hostEndpoint);
        const port = (await this.#forwarder.listen(at)).port ?? 0;
        this.#endpointUrl = `http://${subnet.gateway}:${port}`;
        ports.push(port);
      }
    } catch (error) {
      throw new RolloutError(
        'ENVIRONMENT_START_FAILED',
        `cannot listen on the gateway ${subnet.gateway} of the sandbox's network`,
        {
          phase: 'environment',
          cause: error,
          remedy:
            'Allow lists and host endpoints need the Docker engine in the same network namespace as Slipway.',
        },
      );
    }
    const isClosed = await closeHostTo(bridgeName(this.name), { gateway: subnet.gateway, ports });
    if (!isClosed)
      this.#options.logger.log(
        'warn',
        'services of the host that listen on every address stay reachable from sandboxes: closing them needs root and iptables',
      );
  }

  setPolicy(policy: NetworkPolicy): void {
    this.#proxy?.setPolicy(policy);
  }

  /** Ends the listeners. The network itself is removed by name. Idempotent. */
  async close(): Promise<void> {
    await Promise.all([this.#proxy?.close(), this.#forwarder?.close()]);
  }

  async #create(): Promise<Subnet> {
    const { engine, pool, prefix, sandbox, labels } = this.#options;
    let refused: unknown;
    let tries = 0;
    for (const subnet of subnetsOf(pool, { prefix, seed: sandbox })) {
      if (isTakenHere(subnet)) continue;
      tries += 1;
      if (tries > 64) break;
      try {
        await engine.json({
          method: 'POST',
          path: '/networks/create',
          json: {
            Name: sandbox,
            CheckDuplicate: true,
            Driver: 'bridge',
            Internal: true,
            IPAM: { Config: [{ Subnet: subnet.cidr, Gateway: subnet.gateway }] },
            Options: { 'com.docker.network.bridge.name': bridgeName(sandbox) },
            Labels: engineLabels(sandbox, labels),
          },
          signal: AbortSignal.timeout(60_000),
        });
        return subnet;
      } catch (error) {
        refused = error;
        if (!isOverlap(error)) break;
      }
    }
    throw engineFailure(refused ?? new EngineError(409, `no free subnet in ${pool}`), {
      code: 'ENVIRONMENT_START_FAILED',
      phase: 'environment',
      what: "creating the sandbox's network",
    });
  }
}

function isOverlap(error: unknown): boolean {
  return (
    error instanceof EngineError &&
    /overlaps|already (in use|used)|conflicts with/i.test(error.message)
  );
}
