/**
 * A fake of Daytona that holds state and speaks its wire format: the API under `/api`, the toolbox of each sandbox under `/toolbox/<id>`, object storage under
 * `/storage`. Sandboxes are real ones of the local environment, or light ones. The service's own clients are pointed at it to show that it is honest.
 */
import { lookup } from 'node:dns/promises';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Duplex } from 'node:stream';
import { WebSocketServer } from 'ws';
import { CreateRefused } from '../sandbox-host/create-meter.ts';
import type { HostedSandbox } from '../sandbox-host/hosted-sandbox.ts';
import type { Egress } from '../sandbox-host/sandbox-body.ts';
import type { SandboxHost } from '../sandbox-host/sandbox-host.ts';
import { Exchange, Refusal } from './http-exchange.ts';
import { ObjectStorage } from './object-storage.ts';
import {
  FakeSnapshots,
  organizationId,
  pushAccess,
  snapshotDto,
  type BuildInfo,
} from './snapshots.ts';
import { FakeToolbox } from './toolbox.ts';

interface SandboxRequest {
  readonly name?: string;
  readonly snapshot?: string;
  readonly buildInfo?: BuildInfo;
  readonly user?: string;
  readonly env?: Record<string, string>;
  readonly labels?: Record<string, string>;
  readonly networkBlockAll?: boolean;
  readonly networkAllowList?: string;
  readonly domainAllowList?: string;
  readonly target?: string;
  readonly cpu?: number;
  readonly memory?: number;
  readonly disk?: number;
  readonly autoStopInterval?: number;
  readonly autoDeleteInterval?: number;
  readonly ttlMinutes?: number;
}

interface SandboxRecord {
  readonly hosted: HostedSandbox;
  readonly toolbox: FakeToolbox;
  readonly name: string;
  readonly createdAt: Date;
  request: SandboxRequest;
  isDestroying: boolean;
}

export const fakeKey = 'fake-daytona-key';

export class DaytonaService implements AsyncDisposable {
  readonly host: SandboxHost;
  readonly snapshots: FakeSnapshots;
  /** `METHOD path` of every request, in order. */
  readonly requests: string[] = [];
  /** Totals and use of the organisation's quota, as its usage says. */
  readonly quota = { cpu: 100, cpuUsed: 0 };
  readonly #storage = new ObjectStorage();
  readonly #records = new Map<string, SandboxRecord>();
  readonly #server: Server;
  readonly #sockets = new WebSocketServer({ noServer: true });

  private constructor(host: SandboxHost) {
    this.host = host;
    this.snapshots = new FakeSnapshots(host, this.#storage);
    this.#server = createServer((request, response) => {
      const exchange = new Exchange(request, response);
      this.#serve(exchange).catch((error: unknown) => exchange.refuse(error));
    });
    this.#server.on('upgrade', (request, socket, head) => this.#upgrade(request, socket, head));
  }

  /** The service ends the host with itself. */
  static async start(host: SandboxHost): Promise<DaytonaService> {
    const service = new DaytonaService(host);
    await new Promise<void>((resolve) => service.#server.listen(0, '127.0.0.1', resolve));
    return service;
  }

  get #baseUrl(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  get apiUrl(): string {
    return `${this.#baseUrl}/api`;
  }

  /** What its users see: names and what was asked for. */
  get sandboxes(): readonly { readonly name: string; readonly request: SandboxRequest }[] {
    return [...this.#records.values()].map(({ name, request }) => ({ name, request }));
  }

  /** Breaks every log that is being followed. */
  cutStreams(): void {
    for (const socket of this.#sockets.clients) socket.terminate();
  }

  hosted(name: string): HostedSandbox | null {
    return this.#byName(name)?.hosted ?? null;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.#sockets.clients) socket.terminate();
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
    await this.host[Symbol.asyncDispose]();
    await this.snapshots[Symbol.asyncDispose]();
  }

  async #serve(exchange: Exchange): Promise<void> {
    const { pathname } = exchange.url;
    this.requests.push(`${exchange.method} ${pathname}`);
    const [, part = '', ...rest] = pathname.split('/');
    if (part === 'storage') {
      await this.#storage.serve(exchange, rest.join('/'));
      return;
    }
    if (exchange.request.headers.authorization !== `Bearer ${fakeKey}`)
      throw new Refusal(401, 'Unauthorized');
    this.#expire();
    if (part === 'toolbox') {
      const [id = '', ...path] = rest;
      await this.#record(id).toolbox.serve(exchange, `/${path.join('/')}`);
      return;
    }
    if (part !== 'api') throw new Refusal(404, `Cannot ${exchange.method} ${pathname}`);
    const [kind = '', id, verb] = rest.map(decodeURIComponent);
    if (kind === 'sandbox') {
      await this.#sandbox(exchange, id, verb);
      return;
    }
    if (kind === 'snapshots') {
      await this.#snapshot(exchange, id, verb);
      return;
    }
    if (kind === 'object-storage') {
      exchange.answer(pushAccess(this.#baseUrl));
      return;
    }
    if (kind === 'organizations') {
      exchange.answer(this.#usage());
      return;
    }
    throw new Refusal(404, `Cannot ${exchange.method} ${pathname}`);
  }

  async #sandbox(exchange: Exchange, id?: string, verb?: string): Promise<void> {
    if (id === undefined) {
      if (exchange.method === 'POST') await this.#create(exchange);
      else this.#list(exchange);
      return;
    }
    const record = this.#record(id);
    if (exchange.method === 'DELETE') {
      record.isDestroying = true;
      void record.hosted.remove().then(() => this.#records.delete(record.hosted.id));
    } else if (verb === 'network-settings') {
      record.request = { ...record.request, ...(await exchange.json<SandboxRequest>()) };
      await record.hosted.setEgress(await egressOf(record.request));
    } else if (verb === 'toolbox-proxy-url') {
      exchange.answer({ url: `${this.#baseUrl}/toolbox` });
      return;
    }
    exchange.answer(this.#dto(record));
  }

  async #create(exchange: Exchange): Promise<void> {
    const request = await exchange.json<SandboxRequest>();
    const name = request.name ?? `sandbox-${Math.random().toString(36).slice(2)}`;
    if (this.#byName(name) !== null)
      throw new Refusal(409, `Sandbox with name ${name} already exists`);
    const snapshot = request.snapshot === undefined ? null : this.snapshots.find(request.snapshot);
    if (request.snapshot !== undefined && snapshot?.state !== 'active')
      throw new Refusal(400, `Snapshot ${request.snapshot} not found or not active`);
    if (snapshot !== null && (request.cpu ?? request.memory ?? request.disk) !== undefined)
      throw new Refusal(400, 'Cannot specify Sandbox resources when using a snapshot');
    const image = await (snapshot?.image ??
      this.snapshots.imageOf(
        request.buildInfo ?? { dockerfileContent: 'FROM debian:bookworm-slim\n' },
      ));
    const { cpu, memory, disk } = snapshot?.request ?? request;
    if (this.#byName(name) !== null)
      throw new Refusal(409, `Sandbox with name ${name} already exists`);
    const hosted = this.#made({
      ...{ image, env: request.env ?? {}, cpus: cpu ?? null },
      memoryMb: memory === undefined ? null : memory * 1024,
      storageMb: disk === undefined ? null : disk * 1024,
      egress: await egressOf(request),
    });
    const { faults } = this.host;
    const record: SandboxRecord = {
      ...{ hosted, name, request, isDestroying: false, createdAt: this.host.clock.now() },
      toolbox: new FakeToolbox(hosted, { user: request.user ?? null, faults }),
    };
    this.#records.set(hosted.id, record);
    if (faults.strikes('lost-answer')) exchange.response.destroy();
    else exchange.answer(this.#dto(record));
  }

  #made(request: Parameters<SandboxHost['create']>[0]): HostedSandbox {
    try {
      return this.host.create(request);
    } catch (error) {
      if (!(error instanceof CreateRefused)) throw error;
      const headers = { 'retry-after': String(Math.ceil((error.retryAfterMs ?? 1_000) / 1000)) };
      throw new Refusal(429, error.message, { headers });
    }
  }

  #list(exchange: Exchange): void {
    const { searchParams } = exchange.url;
    const wanted = JSON.parse(searchParams.get('labels') ?? '{}') as Record<string, string>;
    const limit = Number(searchParams.get('limit') ?? 100);
    const from = Number(searchParams.get('cursor') ?? 0);
    const matching = [...this.#records.values()].filter(({ request }) =>
      Object.entries(wanted).every(([key, value]) => request.labels?.[key] === value),
    );
    const items = matching.slice(from, from + limit).map((record) => this.#dto(record));
    const next = from + limit;
    exchange.answer({ items, nextCursor: next < matching.length ? String(next) : null });
  }

  async #snapshot(exchange: Exchange, id?: string, verb?: string): Promise<void> {
    if (id === undefined) {
      if (exchange.method === 'POST') {
        exchange.answer(snapshotDto(this.snapshots.create(await exchange.json())));
        return;
      }
      const items = this.snapshots.list().map(snapshotDto);
      exchange.answer({ items, total: items.length, page: 1, totalPages: 1 });
      return;
    }
    const found = this.snapshots.find(id);
    if (found === null) throw new Refusal(404, `Snapshot ${id} not found`);
    if (exchange.method === 'DELETE') {
      this.snapshots.remove(found);
      exchange.answer(undefined);
      return;
    }
    if (verb === 'build-logs-url') {
      exchange.answer({ url: `${this.apiUrl}/snapshots/${found.id}/build-logs` });
      return;
    }
    if (verb === 'build-logs') {
      exchange.response.end(found.log);
      return;
    }
    if (verb === 'activate') found.state = 'active';
    exchange.answer(snapshotDto(found));
  }

  #upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void {
    const { pathname } = new URL(request.url ?? '/', this.#baseUrl);
    const [, part, id = '', ...path] = pathname.split('/');
    const record = this.#records.get(id);
    const isAllowed = request.headers.authorization === `Bearer ${fakeKey}`;
    if (part !== 'toolbox' || record === undefined || !isAllowed) {
      socket.end(`HTTP/1.1 ${isAllowed ? '404 Not Found' : '401 Unauthorized'}\r\n\r\n`);
      return;
    }
    this.#sockets.handleUpgrade(request, socket, head, (opened) =>
      record.toolbox.follow(opened, `/${path.join('/')}`),
    );
  }

  /** Sandboxes whose time to live is over go, whoever may still want them. */
  #expire(): void {
    const now = this.host.clock.now().getTime();
    for (const record of this.#records.values()) {
      const { ttlMinutes = 0 } = record.request;
      if (ttlMinutes === 0 || now < record.createdAt.getTime() + ttlMinutes * 60_000) continue;
      record.isDestroying = true;
      void record.hosted.remove().then(() => this.#records.delete(record.hosted.id));
    }
  }

  #byName(name: string): SandboxRecord | null {
    return [...this.#records.values()].find((record) => record.name === name) ?? null;
  }

  #record(idOrName: string): SandboxRecord {
    const record = this.#records.get(idOrName) ?? this.#byName(idOrName);
    if (record === null) throw new Refusal(404, `Sandbox with ID or name ${idOrName} not found`);
    return record;
  }

  #usage(): Record<string, unknown> {
    const none = {
      totalMemoryQuota: 0,
      currentMemoryUsage: 0,
      totalDiskQuota: 0,
      currentDiskUsage: 0,
    };
    const { cpu, cpuUsed } = this.quota;
    const region = { regionId: 'fake', totalCpuQuota: cpu, currentCpuUsage: cpuUsed, ...none };
    return { regionUsage: [region], totalSnapshotQuota: 0, currentSnapshotUsage: 0 };
  }

  #dto(record: SandboxRecord): Record<string, unknown> {
    const { request, hosted, name } = record;
    return {
      ...{ id: hosted.id, organizationId, name, user: request.user ?? 'root', public: false },
      ...{ env: request.env ?? {}, labels: request.labels ?? {}, target: request.target ?? 'fake' },
      ...{ networkBlockAll: request.networkBlockAll ?? false, snapshot: request.snapshot },
      ...{ networkAllowList: request.networkAllowList, domainAllowList: request.domainAllowList },
      ...{ cpu: request.cpu ?? 1, gpu: 0, memory: request.memory ?? 1, disk: request.disk ?? 3 },
      ...{ state: stateOf(record), desiredState: record.isDestroying ? 'destroyed' : 'started' },
      ...{ errorReason: hosted.state === 'failed' ? 'the runner could not make it' : null },
      ...{ autoStopInterval: request.autoStopInterval ?? 15, createdAt: record.createdAt },
      ...{ autoDeleteInterval: request.autoDeleteInterval ?? -1, ttlMinutes: request.ttlMinutes },
      toolboxProxyUrl: `${this.#baseUrl}/toolbox`,
    };
  }
}

function stateOf({ hosted, isDestroying }: SandboxRecord): string {
  if (isDestroying) return 'destroying';
  const states = { creating: 'creating', running: 'started', failed: 'error', stopped: 'stopped' };
  return hosted.state in states ? states[hosted.state as keyof typeof states] : 'destroying';
}

async function egressOf(request: SandboxRequest): Promise<Egress> {
  if (request.networkBlockAll === true) return 'none';
  const listed = (text?: string): readonly string[] =>
    (text ?? '').split(',').filter((entry) => entry !== '');
  const names = listed(request.domainAllowList);
  const cidrs = listed(request.networkAllowList);
  if (names.length > 0 && cidrs.length > 0)
    throw new Refusal(400, 'networkAllowList and domainAllowList cannot be used together');
  if (names.length + cidrs.length === 0) return 'all';
  const found = await Promise.all(
    names.map((name) => lookup(name, { all: true, family: 4 }).catch(() => [])),
  );
  return { cidrs: [...cidrs, ...found.flat().map(({ address }) => `${address}/32`)] };
}
