/**
 * A Kubernetes API server with one node, for tests: the wire format of pods, their exec, network policies, watches, access reviews, quotas and refusals, on
 * sandboxes of a host. https://kubernetes.io/docs/reference/kubernetes-api/
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo, Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { text } from 'node:stream/consumers';
import type { SandboxHost } from '../sandbox-host/sandbox-host.ts';
import { hostAddresses } from '../../conformance/environment/host-listener.ts';
import { ExecServer } from './exec-server.ts';
import { Kubelet } from './kubelet.ts';
import { ObjectStore, selects, versions, type ApiObject } from './object-store.ts';
import { Refusal, refusalOf, refuse, statusOf } from './refusal.ts';
import { problemsOf, type PodSpec } from './validation.ts';

export interface FakeClusterOptions {
  readonly host: SandboxHost;
  readonly namespace?: string;
  /** Bearer token that is let in. */
  readonly token?: string;
  /** `verb resource` that the token may not do. */
  readonly denied?: readonly string[];
  /** Of `exec`, the newest first. */
  readonly execProtocols?: readonly string[];
  /** Pods that the ResourceQuota of the namespace allows. */
  readonly podQuota?: number;
  /** false: policies are taken, and pods reach what they like, this server too. */
  readonly enforcesPolicies?: boolean;
}

export interface CountedRequest {
  readonly method: string;
  readonly path: string;
  readonly status: number;
}

type Kind = 'pods' | 'networkpolicies';
const kinds: Readonly<Record<Kind, { readonly kind: string; readonly apiVersion: string }>> = {
  pods: { kind: 'Pod', apiVersion: 'v1' },
  networkpolicies: { kind: 'NetworkPolicy', apiVersion: 'networking.k8s.io/v1' },
};

export class FakeCluster implements AsyncDisposable {
  readonly namespace: string;
  readonly token: string;
  readonly stores: Readonly<Record<Kind, ObjectStore>>;
  /** Every answered request, in order. */
  readonly requests: CountedRequest[] = [];
  readonly #options: FakeClusterOptions;
  readonly #kubelet: Kubelet;
  readonly #exec: ExecServer;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  readonly #versions = versions();

  private constructor(options: FakeClusterOptions) {
    this.#options = options;
    this.namespace = options.namespace ?? 'sandboxes';
    this.token = options.token ?? 'token-of-tests';
    this.stores = {
      pods: new ObjectStore(this.#versions),
      networkpolicies: new ObjectStore(this.#versions),
    };
    this.#kubelet = new Kubelet({
      host: options.host,
      pods: this.stores.pods,
      policies: this.stores.networkpolicies,
      clock: options.host.clock,
      serviceVariables: () => ({
        KUBERNETES_SERVICE_HOST: hostAddresses()[0] ?? '127.0.0.1',
        KUBERNETES_SERVICE_PORT: new URL(this.url).port,
      }),
      enforcesPolicies: options.enforcesPolicies ?? true,
    });
    this.#exec = new ExecServer({
      protocols: options.execProtocols ?? ['v5.channel.k8s.io', 'v4.channel.k8s.io'],
      isHalfOpen: () => options.host.faults.strikes('half-open'),
    });
    this.#server = createServer((request, response) => void this.#answer(request, response));
    this.#server.on('upgrade', (request, socket, head) => this.#upgrade(request, socket, head));
    this.#server.on('connection', (socket) => {
      this.#sockets.add(socket);
      socket.on('close', () => this.#sockets.delete(socket));
    });
  }

  static async open(options: FakeClusterOptions): Promise<FakeCluster> {
    const cluster = new FakeCluster(options);
    cluster.#server.listen(0, options.enforcesPolicies === false ? '0.0.0.0' : '127.0.0.1');
    await once(cluster.#server, 'listening');
    return cluster;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Text of a kubeconfig for this cluster. */
  kubeconfig(): string {
    return JSON.stringify({
      apiVersion: 'v1',
      kind: 'Config',
      'current-context': 'fake',
      // The official client takes plain HTTP only so.
      clusters: [{ name: 'fake', cluster: { server: this.url, 'insecure-skip-tls-verify': true } }],
      users: [{ name: 'tests', user: { token: this.token } }],
      contexts: [
        { name: 'fake', context: { cluster: 'fake', user: 'tests', namespace: this.namespace } },
      ],
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#exec.close();
    this.#server.close();
    for (const socket of this.#sockets) socket.destroy();
    for (const pod of this.stores.pods.list()) await this.#kubelet.evict(pod.metadata.name);
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? '/', this.url);
    const count = (status: number): void =>
      void this.requests.push({ method: request.method ?? '', path: url.pathname, status });
    try {
      const { status, document } = await this.#route(request, { url, response });
      count(status);
      if (document === null) return; // a watch, or an answer that is lost
      response.writeHead(status, { 'content-type': 'application/json' });
      response.end(JSON.stringify(document));
    } catch (error) {
      const refusal = refusalOf(error);
      count(refusal.code);
      refuse(response, refusal);
    }
  }

  async #route(
    request: IncomingMessage,
    { url, response }: { readonly url: URL; readonly response: ServerResponse },
  ): Promise<{ readonly status: number; readonly document: object | null }> {
    this.#authenticate(request);
    const { method = 'GET' } = request;
    const path = url.pathname;
    if (path === '/version')
      return found({
        major: '1',
        minor: '33',
        gitVersion: 'v1.33.0-fake',
        platform: 'linux/amd64',
      });
    if (path === '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews' && method === 'POST')
      return { status: 201, document: this.#review(await body(request)) };
    const place =
      /^\/(?:api\/v1|apis\/[a-z.0-9]+\/v1)\/namespaces\/([^/]+)(?:\/([a-z]+)(?:\/([^/]+))?)?$/.exec(
        path,
      );
    const [, namespace, resource, name] = place ?? [];
    if (namespace === undefined)
      throw new Refusal(404, 'NotFound', 'the server could not find the requested resource');
    if (namespace !== this.namespace)
      throw new Refusal(404, 'NotFound', `namespaces "${namespace}" not found`);
    if (resource === undefined)
      return found({
        apiVersion: 'v1',
        kind: 'Namespace',
        metadata: { name: namespace },
        status: { phase: 'Active' },
      });
    if (resource === 'resourcequotas') return found(this.#quotas());
    if (!isKind(resource))
      throw new Refusal(404, 'NotFound', 'the server could not find the requested resource');
    const verb = verbOf(method, { name, isWatch: isTrue(url.searchParams.get('watch')) });
    this.#authorize(`${verb} ${resource}`);
    const store = this.stores[resource];
    switch (verb) {
      case 'watch':
        this.#watch(store, url, response);
        return { status: 200, document: null };
      case 'list':
        return found(this.#list(resource, url));
      case 'create': {
        const document = await this.#create(
          resource,
          (await body(request)) as unknown as ApiObject,
        );
        if (resource === 'pods' && this.#options.host.faults.strikes('lost-answer')) {
          response.destroy();
          return { status: 201, document: null };
        }
        return { status: 201, document };
      }
      case 'get':
        return found(existing(store, resource, name));
      case 'update': {
        const old = existing(store, resource, name);
        const document = (await body(request)) as unknown as ApiObject;
        refuseInvalid(document);
        const { uid, creationTimestamp } = old.metadata;
        const metadata = {
          ...document.metadata,
          ...(uid && { uid }),
          ...(creationTimestamp && { creationTimestamp }),
        };
        const changed = store.change({ ...document, metadata });
        if (resource === 'networkpolicies')
          for (const policy of [old, changed]) await this.#kubelet.filter(policy);
        return found(changed);
      }
      case 'delete':
        return found(await this.#delete(resource, name ?? '', await body(request)));
      default:
        throw new Refusal(405, 'MethodNotAllowed', 'the server does not allow this method');
    }
  }

  async #create(resource: Kind, document: ApiObject): Promise<ApiObject> {
    refuseInvalid(document);
    const store = this.stores[resource];
    const { name } = document.metadata;
    if (store.get(name) !== null)
      throw new Refusal(409, 'AlreadyExists', `${resource} "${name}" already exists`);
    const { podQuota } = this.#options;
    const used = this.stores.pods.list().length;
    if (resource === 'pods' && podQuota !== undefined && used >= podQuota)
      throw new Refusal(
        403,
        'Forbidden',
        `pods "${name}" is forbidden: exceeded quota: pods, requested: pods=1, used: pods=${used}, limited: pods=${podQuota}`,
      );
    const namespaced = {
      ...document,
      metadata: { ...document.metadata, namespace: this.namespace },
    };
    if (resource === 'networkpolicies') {
      const policy = store.add(namespaced);
      await this.#kubelet.filter(policy);
      return policy;
    }
    const bringUp = this.#kubelet.take(namespaced); // refuses before anything is there
    const pod = store.add({ ...namespaced, status: { phase: 'Pending' } });
    bringUp();
    return pod;
  }

  async #delete(
    resource: Kind,
    name: string,
    options: Readonly<Record<string, unknown>>,
  ): Promise<object> {
    const store = this.stores[resource];
    const object = existing(store, resource, name);
    const { uid } = (options['preconditions'] ?? {}) as { readonly uid?: string };
    if (uid !== undefined && uid !== object.metadata.uid)
      throw new Refusal(409, 'Conflict', `the UID in the precondition (${uid}) does not match`);
    if (resource === 'networkpolicies') {
      store.remove(name);
      await this.#kubelet.filter(object);
      return { apiVersion: 'v1', kind: 'Status', status: 'Success', details: { name } };
    }
    if (object.metadata.deletionTimestamp !== undefined) return object;
    const grace = (object['spec'] as PodSpec).terminationGracePeriodSeconds ?? 30;
    const dying = store.change({
      ...object,
      metadata: {
        ...object.metadata,
        deletionTimestamp: new Date().toISOString(),
        deletionGracePeriodSeconds: grace,
      },
    });
    void this.#kubelet.evict(name).catch(() => undefined); // it stays as it is, as on a node that is down
    return dying;
  }

  #list(resource: Kind, url: URL): object {
    const { kind, apiVersion } = kinds[resource];
    const limit = Number(url.searchParams.get('limit') ?? Infinity);
    const from = Number(url.searchParams.get('continue') ?? 0);
    const all = this.#selected(this.stores[resource].list(), url);
    const items = all.slice(from, from + limit);
    const rest = all.length - from - items.length;
    return {
      kind: `${kind}List`,
      apiVersion,
      metadata: {
        resourceVersion: String(this.#versions.current),
        ...(rest > 0 && { continue: String(from + items.length), remainingItemCount: rest }),
      },
      items,
    };
  }

  #watch(store: ObjectStore, url: URL, response: ServerResponse): void {
    response.writeHead(200, { 'content-type': 'application/json' });
    response.flushHeaders();
    const line = (event: object): void => void response.write(`${JSON.stringify(event)}\n`);
    const since = Number(url.searchParams.get('resourceVersion') ?? this.#versions.current);
    const stop = store.watch(since, ({ type, object }) => {
      if (this.#selected([object], url).length > 0) line({ type, object });
    });
    if (stop === null) {
      line({
        type: 'ERROR',
        object: statusOf(new Refusal(410, 'Expired', 'too old resource version')),
      });
      response.end();
      return;
    }
    const seconds = Number(url.searchParams.get('timeoutSeconds') ?? 1800);
    const timer = setTimeout(() => response.end(), seconds * 1000);
    response.on('close', () => {
      clearTimeout(timer);
      stop();
    });
  }

  #selected(objects: readonly ApiObject[], url: URL): readonly ApiObject[] {
    const fields = url.searchParams.get('fieldSelector');
    return objects.filter(
      ({ metadata }) =>
        selects(url.searchParams.get('labelSelector'), metadata.labels ?? {}) &&
        selects(fields, { 'metadata.name': metadata.name }),
    );
  }

  #review(document: Readonly<Record<string, unknown>>): object {
    const { resourceAttributes } = document['spec'] as {
      readonly resourceAttributes: Readonly<Record<string, string>>;
    };
    const { verb, resource, subresource = '' } = resourceAttributes;
    const wanted = `${verb} ${resource}${subresource === '' ? '' : `/${subresource}`}`;
    const allowed = this.#options.denied?.includes(wanted) !== true;
    return { ...document, metadata: {}, status: { allowed } };
  }

  #quotas(): object {
    const { podQuota } = this.#options;
    const used = { pods: String(this.stores.pods.list().length) };
    const quota = {
      metadata: { name: 'pods', namespace: this.namespace },
      spec: { hard: { pods: String(podQuota) } },
      status: { hard: { pods: String(podQuota) }, used },
    };
    const metadata = { resourceVersion: String(this.#versions.current) };
    return {
      kind: 'ResourceQuotaList',
      apiVersion: 'v1',
      metadata,
      items: podQuota === undefined ? [] : [quota],
    };
  }

  #upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void {
    const url = new URL(request.url ?? '/', this.url);
    try {
      this.#authenticate(request);
      this.#authorize('get pods/exec');
      const [, namespace, name = ''] =
        /^\/api\/v1\/namespaces\/([^/]+)\/pods\/([^/]+)\/exec$/.exec(url.pathname) ?? [];
      if (namespace !== this.namespace || this.stores.pods.get(name) === null)
        throw new Refusal(404, 'NotFound', `pods "${name}" not found`);
      const sandbox = this.#kubelet.running(name);
      if (sandbox === null)
        throw new Refusal(
          500,
          'InternalError',
          `unable to upgrade connection: container not found in pod ${name}`,
        );
      this.#exec.take(request, { socket, head }, sandbox);
    } catch (error) {
      const refusal = refusalOf(error);
      const document = JSON.stringify(statusOf(refusal));
      socket.end(
        `HTTP/1.1 ${refusal.code} ${refusal.reason}\r\nContent-Type: application/json\r\nContent-Length: ${Buffer.byteLength(document)}\r\nConnection: close\r\n\r\n${document}`,
      );
    }
  }

  #authenticate(request: IncomingMessage): void {
    if (request.headers.authorization !== `Bearer ${this.token}`)
      throw new Refusal(401, 'Unauthorized', 'Unauthorized');
  }

  #authorize(wanted: string): void {
    if (this.#options.denied?.includes(wanted) !== true) return;
    throw new Refusal(
      403,
      'Forbidden',
      `User "tests" cannot ${wanted} in the namespace "${this.namespace}"`,
    );
  }
}

function isKind(resource: string): resource is Kind {
  return Object.hasOwn(kinds, resource);
}

function isTrue(value: string | null): boolean {
  return value === 'true' || value === '1';
}

function verbOf(
  method: string,
  { name, isWatch }: { readonly name: string | undefined; readonly isWatch: boolean },
): string {
  if (name === undefined) {
    if (method === 'GET') return isWatch ? 'watch' : 'list';
    return method === 'POST' ? 'create' : 'unknown';
  }
  return { GET: 'get', PUT: 'update', DELETE: 'delete' }[method] ?? 'unknown';
}

function existing(store: ObjectStore, resource: string, name: string | undefined): ApiObject {
  const object = store.get(name ?? '');
  if (object === null) throw new Refusal(404, 'NotFound', `${resource} "${name}" not found`);
  return object;
}

function refuseInvalid(document: ApiObject): void {
  const problems = problemsOf(document);
  if (problems.length === 0) return;
  const { kind, metadata } = document;
  throw new Refusal(
    422,
    'Invalid',
    `${kind} "${metadata.name}" is invalid: ${problems.join(', ')}`,
  );
}

function found(document: object): { readonly status: number; readonly document: object } {
  return { status: 200, document };
}

async function body(request: IncomingMessage): Promise<Readonly<Record<string, unknown>>> {
  const sent = await text(request);
  return sent === '' ? {} : (JSON.parse(sent) as Readonly<Record<string, unknown>>);
}
