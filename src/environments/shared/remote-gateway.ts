/**
 * Remote sandboxes reach the model gateway of this machine by an address that the user gives (a public one, or a tunnel's). The environments themselves know
 * nothing of it: a host endpoint that is asked for becomes that address, and an allowed host where the network is restricted.
 */
import { RolloutError } from '../../core/errors.ts';
import { parseAllowedHost, withExtraHosts, type NetworkPolicy } from '../../wire/network-policy.ts';
import { parseIpAddress } from '../../wire/ip-address.ts';
import type {
  Environment,
  EnvironmentCapabilities,
  EnvironmentProvider,
  EnvironmentSpec,
  StartReport,
} from '../environment.ts';
import { WrappedEnvironment, type StartOptions } from './wrapped-environment.ts';
import { WrappedProvider } from './wrapped-provider.ts';

/** Stands for the port of the gateway's listener, where there are several. */
export const portPlaceholder = '{port}';

const remedy =
  'Give the address of a tunnel to the gateway, or a public one: --gateway-url https://HOST.';

/** `url` as it was given, without a slash at its end. CONFIG_INVALID for what a sandbox elsewhere cannot reach. */
export function checkGatewayUrl(url: string): string {
  const parsed = URL.parse(url.replaceAll(portPlaceholder, '1'));
  const isHttp = parsed?.protocol === 'http:' || parsed?.protocol === 'https:';
  if (parsed === null || !isHttp || parsed.search !== '' || parsed.hash !== '')
    throw refused(`${JSON.stringify(url)} is not an http or https URL without query`);
  if (parsed.username !== '' || parsed.password !== '')
    throw refused('the address of the gateway holds a login, which sandboxes would see');
  const host = parsed.hostname.replace(/^\[(.*)\]$/, '$1').replace(/\.$/, '');
  const kind = unreachableKind(host);
  if (kind !== null) throw refused(`${host} is ${kind}: from a remote sandbox it leads elsewhere`);
  return url.replace(/\/+$/, '');
}

/** Remote providers with the gateway's address; others as they are. CONFIG_INVALID for an address that cannot be reached. */
export function remoteGateway(
  provider: EnvironmentProvider,
  gatewayUrl: string | null,
): EnvironmentProvider {
  if (provider.isRemote !== true) return provider;
  return new RemoteGatewayProvider(
    provider,
    gatewayUrl === null ? null : checkGatewayUrl(gatewayUrl),
  );
}

class RemoteGatewayProvider extends WrappedProvider {
  readonly #url: string | null;

  constructor(inner: EnvironmentProvider, url: string | null) {
    super(inner);
    this.#url = url;
  }

  override get capabilities(): EnvironmentCapabilities {
    return { ...this.inner.capabilities, hostEndpoint: this.#url !== null };
  }

  override environment(spec: EnvironmentSpec): Environment {
    const { hostEndpoint } = spec;
    if (hostEndpoint === null) return this.inner.environment(spec);
    if (this.#url === null) throw noAddress(this.kind);
    const url = this.#url.replaceAll(portPlaceholder, String(hostEndpoint.port));
    const open = (policy: NetworkPolicy): NetworkPolicy => this.#opened(policy, url);
    const inner = this.inner.environment({
      ...spec,
      hostEndpoint: null,
      network: open(spec.network),
      laterNetworks: spec.laterNetworks.map(open),
    });
    return new RemoteGatewayEnvironment(inner, { url, open });
  }

  #opened(policy: NetworkPolicy, url: string): NetworkPolicy {
    if (policy.mode === 'public') return policy;
    if (!this.inner.capabilities.allowlist)
      throw new RolloutError(
        'CAPABILITY_UNSUPPORTED',
        `a sandbox of ${this.kind} without network cannot be let through to the gateway alone`,
        {
          phase: 'config',
          field: 'environment.network_mode',
          remedy: 'Use an agent that calls its model from this machine, or a public network.',
        },
      );
    const host = new URL(url).hostname.replace(/^\[(.*)\]$/, '$1');
    return withExtraHosts(policy, [parseAllowedHost(host, '--gateway-url')]).policy;
  }
}

interface GatewayWay {
  readonly url: string;
  readonly open: (policy: NetworkPolicy) => NetworkPolicy;
}

class RemoteGatewayEnvironment extends WrappedEnvironment {
  protected readonly inner: Environment;
  readonly #gateway: GatewayWay;
  #isUp = false;

  constructor(inner: Environment, gateway: GatewayWay) {
    super();
    this.inner = inner;
    this.#gateway = gateway;
  }

  override get hostEndpointUrl(): string | null {
    return this.#isUp ? this.#gateway.url : null;
  }

  override async start(options: StartOptions): Promise<StartReport> {
    const report = await this.inner.start(options);
    this.#isUp = true;
    return report;
  }

  override setNetworkPolicy(policy: NetworkPolicy, signal: AbortSignal): Promise<void> {
    return this.inner.setNetworkPolicy(this.#gateway.open(policy), signal);
  }
}

/** What makes a host mean something else on another machine; null = nothing does. Private networks may be shared, so they pass. */
function unreachableKind(host: string): string | null {
  if (host === 'localhost' || host.endsWith('.localhost') || host.endsWith('.local'))
    return 'a name of this machine or its link';
  const address = parseIpAddress(host);
  if (address === null) return null;
  const bits =
    address.family === 6 && address.bits >> 32n === 0xffffn
      ? address.bits & 0xffff_ffffn
      : address.bits;
  const isV4 = address.family === 4 || address.bits >> 32n === 0xffffn;
  if (bits === 0n || (isV4 && bits >> 24n === 0n)) return 'the unspecified address';
  if (isV4) {
    if (bits >> 24n === 127n) return 'a loopback address';
    return bits >> 16n === 0xa9fen ? 'a link-local address' : null;
  }
  if (bits === 1n) return 'a loopback address';
  return bits >> 118n === 0x3fan ? 'a link-local address' : null;
}

function refused(message: string): RolloutError {
  return new RolloutError('CONFIG_INVALID', message, {
    phase: 'config',
    field: '--gateway-url',
    remedy,
  });
}

function noAddress(kind: string): RolloutError {
  return new RolloutError(
    'CAPABILITY_UNSUPPORTED',
    `agents in sandboxes of ${kind} need an address at which they reach the gateway of this machine`,
    { phase: 'config', field: '--gateway-url', remedy },
  );
}
