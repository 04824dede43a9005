/**
 * What a sandbox with a network namespace of its own can reach. The namespace starts empty, with loopback only; on top of it
 * come, as the policy wants, a user-mode network (public) or a way to our egress proxy (allowlist), and always the one host
 * endpoint if there is one. Proxy and endpoint are servers of this process on unix sockets; a forwarder inside the namespace, which
 * itself runs on the host, listens on the sandbox's loopback for them. Everything here dies with this process.
 */
import { closeSync, constants, mkdirSync, openSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import path from 'node:path';
import { Scope } from '../../../core/scope.ts';
import type { NetworkPolicy } from '../../../wire/network-policy.ts';
import type { HostEndpoint } from '../../environment.ts';
import { EgressProxy } from '../../shared/egress-proxy.ts';
import { EndpointForwarder } from '../../shared/endpoint-forwarder.ts';
import type { SandboxFolder } from '../sandbox-folder.ts';
import { startLoopbackForwarder } from './loopback-forwarder.ts';
import { startUserNetwork, type HostChild } from './user-network.ts';

const proxyPort = 39_128;

export interface SandboxNetworkOptions {
  readonly folder: SandboxFolder;
  readonly policy: NetworkPolicy;
  /** Policies that may come later. */
  readonly later: readonly NetworkPolicy[];
  readonly hostEndpoint: HostEndpoint | null;
  /** The network namespace belongs to a user namespace of the sandbox. */
  readonly hasUserNamespace: boolean;
}

export class SandboxNetwork {
  readonly #options: SandboxNetworkOptions;
  readonly #scope = new Scope();
  #policy: NetworkPolicy;
  #initPid: number | null = null;
  #proxy: EgressProxy | null = null;
  #userNetwork: HostChild | null = null;
  #closing: Promise<void> | null = null;

  constructor(options: SandboxNetworkOptions) {
    this.#options = options;
    this.#policy = options.policy;
  }

  /** Where the host endpoint is reached from inside; null without one. */
  get endpointUrl(): string | null {
    const { hostEndpoint } = this.#options;
    return hostEndpoint === null ? null : `http://127.0.0.1:${hostEndpoint.port}`;
  }

  /** Variables that lead programs to the proxy while an allowlist is in force. */
  get variables(): readonly string[] {
    if (this.#policy.mode !== 'allowlist') return [];
    const url = `http://127.0.0.1:${this.#proxyPort}`;
    const none = 'localhost,127.0.0.1,::1';
    return [
      ...['HTTP_PROXY', 'HTTPS_PROXY', 'http_proxy', 'https_proxy'].map((name) => `${name}=${url}`),
      ...['NO_PROXY', 'no_proxy'].map((name) => `${name}=${none}`),
    ];
  }

  /** Connects a sandbox that has just started. Rejects with ENVIRONMENT_START_FAILED. */
  async attach(initPid: number, signal: AbortSignal): Promise<void> {
    this.#initPid = initPid;
    const { hostEndpoint, policy, later } = this.#options;
    const wantsProxy = [policy, ...later].some((one) => one.mode === 'allowlist');
    // All of them end before a failure is told: nothing is opened behind the closing that follows it.
    const opened = await Promise.allSettled([
      hostEndpoint === null ? null : this.#openEndpoint(hostEndpoint, signal),
      wantsProxy ? this.#openProxy(signal) : null,
      policy.mode === 'public' ? this.#startUserNetwork(signal) : null,
    ]);
    for (const part of opened) if (part.status === 'rejected') throw part.reason;
  }

  /** Takes away before it gives: connections that the new policy forbids have ended when this resolves. */
  async setPolicy(policy: NetworkPolicy, signal: AbortSignal): Promise<void> {
    if (policy.mode !== 'public') {
      await this.#userNetwork?.stop();
      this.#userNetwork = null;
    }
    this.#policy = policy;
    this.#proxy?.setPolicy(policy);
    if (policy.mode === 'allowlist' && this.#proxy === null) await this.#openProxy(signal);
    if (policy.mode === 'public' && this.#userNetwork === null)
      await this.#startUserNetwork(signal);
  }

  /** Idempotent. */
  close(): Promise<void> {
    this.#closing ??= (async () => {
      await using scope = this.#scope;
      scope.defer(async () => this.#userNetwork?.stop());
    })();
    return this.#closing;
  }

  get #proxyPort(): number {
    return this.#options.hostEndpoint?.port === proxyPort ? proxyPort + 1 : proxyPort;
  }

  async #openEndpoint(endpoint: HostEndpoint, signal: AbortSignal): Promise<void> {
    const server = new EndpointForwarder(endpoint);
    this.#scope.defer(() => server.close());
    await this.#bring(server, { socket: 'endpoint', port: endpoint.port, signal });
  }

  async #openProxy(signal: AbortSignal): Promise<void> {
    const proxy = new EgressProxy({ policy: this.#policy });
    this.#proxy = proxy;
    this.#scope.defer(() => proxy.close());
    await this.#bring(proxy, { socket: 'proxy', port: this.#proxyPort, signal });
  }

  async #startUserNetwork(signal: AbortSignal): Promise<void> {
    this.#userNetwork = await startUserNetwork(this.#options.folder, this.#requiredPid, signal);
  }

  /** Listens on a unix socket of the host and forwards a port of the sandbox's loopback to it. */
  async #bring(
    server: EgressProxy | EndpointForwarder,
    options: { readonly socket: string; readonly port: number; readonly signal: AbortSignal },
  ): Promise<void> {
    const { folder } = this.#options;
    mkdirSync(folder.sockets, { recursive: true, mode: 0o700 });
    const socketPath = path.join(folder.sockets, options.socket);
    await rm(socketPath, { force: true });
    // Socket paths end at 108 bytes; a folder held open gives every path a short name.
    const dir = openSync(folder.sockets, constants.O_RDONLY | constants.O_DIRECTORY);
    try {
      await server.listen({ socketPath: `/proc/self/fd/${dir}/${options.socket}` });
    } finally {
      closeSync(dir);
    }
    const forwarder = await startLoopbackForwarder(folder, {
      initPid: this.#requiredPid,
      hasUserNamespace: this.#options.hasUserNamespace,
      ...options,
    });
    this.#scope.defer(() => forwarder.stop());
  }

  get #requiredPid(): number {
    if (this.#initPid === null) throw new Error('the network is attached after the start');
    return this.#initPid;
  }
}
