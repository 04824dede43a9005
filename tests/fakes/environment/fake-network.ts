import { get } from 'node:http';
import { isIP } from 'node:net';
import type { HostEndpoint } from '../../../src/environments/environment.ts';
import type { AllowedHost, NetworkPolicy } from '../../../src/wire/network-policy.ts';

const endpointName = 'endpoint.fake';

/** The network of a fake sandbox: really fetches from the host, as far as the policy lets it. */
export class FakeNetwork {
  policy: NetworkPolicy;
  readonly #endpoint: HostEndpoint | null;

  constructor(policy: NetworkPolicy, endpoint: HostEndpoint | null) {
    this.policy = policy;
    this.#endpoint = endpoint;
  }

  get endpointUrl(): string | null {
    return this.#endpoint === null ? null : `http://${endpointName}:${this.#endpoint.port}`;
  }

  /** What a GET answers; null when the policy or the host refuses. */
  async fetch(route: 'direct' | 'proxied', host: string, port: number): Promise<string | null> {
    if (this.#endpoint !== null && host === endpointName && port === this.#endpoint.port)
      return await getText(this.#endpoint.host, port);
    return this.#isOpen(route, host) ? await getText(host, port) : null;
  }

  /** Loopback is the sandbox's own, where nothing listens. */
  #isOpen(route: 'direct' | 'proxied', host: string): boolean {
    const { policy } = this;
    if (host.startsWith('127.') || host === 'localhost' || policy.mode === 'no-network')
      return false;
    if (policy.mode === 'public') return true;
    return route === 'proxied' && policy.hosts.some((allowed) => matches(allowed, host));
  }
}

function matches({ kind, value }: AllowedHost, host: string): boolean {
  if (kind === 'wildcard-hostname') return isIP(host) === 0 && host.endsWith(value.slice(1));
  return host === value;
}

function getText(host: string, port: number): Promise<string | null> {
  return new Promise((resolve) => {
    const request = get({ host, port, timeout: 2_000, agent: false }, (response) => {
      response.setEncoding('utf8');
      let text = '';
      response.on('data', (piece: string) => (text += piece));
      response.on('end', () => resolve(text));
    });
    request.on('timeout', () => request.destroy());
    request.on('error', () => resolve(null));
  });
}
