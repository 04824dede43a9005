/**
 * What a rollout service uses of NATS, made where it is not there yet: a stream of work that each host takes from, a stream of messages between a front end and its
 * hosts, a bucket of claims, a store of files. Everything has the prefix of the service in its name.
 */
import {
  AckPolicy,
  DiscardPolicy,
  jetstream,
  jetstreamManager,
  JetStreamApiError,
  RetentionPolicy,
  StorageType,
  type JetStreamClient,
  type JetStreamManager,
  type StreamConfig,
} from '@nats-io/jetstream';
import { Kvm, type KV } from '@nats-io/kv';
import { Objm, type ObjectStore } from '@nats-io/obj';
import {
  connect,
  credsAuthenticator,
  type ConnectionOptions,
  type NatsConnection,
} from '@nats-io/transport-node';
import { setTimeout as delay } from 'node:timers/promises';
import { messageOf, RolloutError } from '../../core/errors.ts';

/** Below it, messages stay stuck after a crash of the server. */
const leastVersion = '2.10.27';
/** The first stream of a fresh cluster waits for its election, and so does whoever comes while a leader is missed. */
const openMs = 60_000;
/** What a server was asked while it was cut off from its leader is never answered: it is asked again. */
const makeMs = 6_000;
/** A request whose connection breaks is told of by its time alone. */
const requestMs = 2_000;
const retryMs = 100;
const nanosPerMs = 1_000_000;
const messagesAgeMs = 10 * 60_000;
/** Whoever would take a file has gone. */
const filesAgeMs = 24 * 60 * 60_000;
const messagesBytes = 1024 ** 3;
/** Work that nobody acknowledged goes to another host after this. */
export const workAckMs = 5_000;

export interface NatsSettings {
  readonly urls: readonly string[];
  readonly prefix: string;
  /** null = 3 in a cluster, else 1. */
  readonly replicas: number | null;
  /** Secrets; null = none. */
  readonly user: string | null;
  readonly password: string | null;
  readonly token: string | null;
  /** Text of a credentials file. */
  readonly credentials: string | null;
  readonly tls: {
    readonly caFile: string | null;
    readonly certFile: string | null;
    readonly keyFile: string | null;
  };
}

export class NatsBus {
  readonly connection: NatsConnection;
  readonly js: JetStreamClient;
  readonly claims: KV;
  readonly files: ObjectStore;
  readonly names: BusNames;
  readonly manager: JetStreamManager;

  private constructor(
    parts: Pick<NatsBus, 'connection' | 'js' | 'claims' | 'files' | 'names' | 'manager'>,
  ) {
    this.connection = parts.connection;
    this.js = parts.js;
    this.claims = parts.claims;
    this.files = parts.files;
    this.names = parts.names;
    this.manager = parts.manager;
  }

  /**
   * Waits up to a minute for the servers of a cluster to agree on a leader. QUEUE_UNAVAILABLE: no server, no JetStream, or no right to use it. QUEUE_UNSUPPORTED: a server
   * that is too old.
   */
  static async open(settings: NatsSettings, name: string): Promise<NatsBus> {
    const endsAt = performance.now() + openMs;
    for (;;) {
      // Anew each time: another server may be in touch with the leader.
      const connection = await dial(settings, name);
      try {
        return await NatsBus.#on(connection, settings);
      } catch (error) {
        await connection.close();
        if (!isLeaderless(error) || performance.now() > endsAt) throw attributed(error);
        await delay(retryMs);
      }
    }
  }

  static async #on(connection: NatsConnection, settings: NatsSettings): Promise<NatsBus> {
    checkVersion(connection);
    const replicas = settings.replicas ?? ((connection.info?.cluster ?? '') === '' ? 1 : 3);
    const names = busNames(settings.prefix);
    const manager = await jetstreamManager(connection, { timeout: makeMs });
    await ensureStream(manager, {
      ...{ name: names.workStream, subjects: [names.work], num_replicas: replicas },
      ...{ retention: RetentionPolicy.Workqueue, storage: StorageType.File },
    });
    await ensureStream(manager, {
      ...{ name: names.messageStream, subjects: [`${names.messages}.>`], num_replicas: replicas },
      ...{ retention: RetentionPolicy.Limits, storage: StorageType.File },
      ...{ max_age: messagesAgeMs * nanosPerMs, max_bytes: messagesBytes },
      discard: DiscardPolicy.Old,
    });
    await manager.consumers.add(names.workStream, {
      ...{ durable_name: names.workers, ack_policy: AckPolicy.Explicit, max_ack_pending: -1 },
      ack_wait: workAckMs * nanosPerMs,
    });
    const js = jetstream(connection, { timeout: requestMs });
    const patient = jetstream(connection, { timeout: makeMs });
    // Read from the leader alone: another node may be behind, and not know a claim that was made.
    await new Kvm(patient).create(names.claims, { history: 1, replicas, allow_direct: false });
    const claims = await new Kvm(js).open(names.claims);
    const files = await new Objm(patient).create(names.files, {
      ...{ replicas, storage: StorageType.File },
      ttl: filesAgeMs * nanosPerMs,
    });
    return new NatsBus({ connection, js, claims, files, names, manager });
  }

  /** Nothing of what was given out can be taken any more. Tries until it is so. */
  async purgeWork(signal: AbortSignal): Promise<void> {
    for (;;) {
      signal.throwIfAborted();
      try {
        await this.manager.streams.purge(this.names.workStream);
        return;
      } catch {
        await delay(retryMs, undefined, { signal });
      }
    }
  }

  async close(): Promise<void> {
    await this.connection.close();
  }
}

export type BusNames = ReturnType<typeof busNames>;

function busNames(prefix: string) {
  const name = prefix.toUpperCase().replaceAll(/[^A-Z0-9_-]/g, '_');
  return {
    workStream: `${name}_WORK`,
    messageStream: `${name}_MESSAGES`,
    workers: 'workers',
    claims: `${name}_CLAIMS`,
    files: `${name}_FILES`,
    work: `${prefix}.work`,
    messages: `${prefix}.messages`,
    hostBeat: `${prefix}.beat.host`,
    frontBeat: `${prefix}.beat.front`,
  } as const;
}

async function dial(settings: NatsSettings, name: string): Promise<NatsConnection> {
  const { urls, user, password, token, credentials, tls } = settings;
  const usesTls =
    tls.caFile !== null || tls.certFile !== null || urls.some((url) => /^(tls|wss):/.test(url));
  const options: ConnectionOptions = {
    ...{ servers: [...urls], name, maxReconnectAttempts: -1, reconnectTimeWait: 250 },
    ...{ timeout: 5_000, pingInterval: 5_000, maxPingOut: 2, ignoreClusterUpdates: true },
    // Else every request makes a stack trace, in case that it fails.
    noAsyncTraces: true,
    ...(user !== null && { user }),
    ...(password !== null && { pass: password }),
    ...(token !== null && { token }),
    ...(credentials !== null && {
      authenticator: credsAuthenticator(new TextEncoder().encode(credentials)),
    }),
    ...(usesTls && {
      tls: {
        ...(tls.caFile !== null && { caFile: tls.caFile }),
        ...(tls.certFile !== null && { certFile: tls.certFile }),
        ...(tls.keyFile !== null && { keyFile: tls.keyFile }),
      },
    }),
  };
  try {
    return await connect(options);
  } catch (error) {
    throw unavailable(`no NATS server answers at ${shown(urls)}: ${messageOf(error)}`, error);
  }
}

function checkVersion(connection: NatsConnection): void {
  const version = connection.info?.version ?? '0';
  const number = (text: string): number =>
    text
      .split(/[.-]/)
      .slice(0, 3)
      .reduce((sum, part) => sum * 10_000 + (Number(part) || 0), 0);
  if (number(version) >= number(leastVersion)) return;
  throw new RolloutError('QUEUE_UNSUPPORTED', `the NATS server is of version ${version}`, {
    phase: 'server',
    field: 'queue.url',
    remedy: `Use nats-server ${leastVersion} or later.`,
  });
}

async function ensureStream(
  manager: JetStreamManager,
  config: Partial<StreamConfig> & { readonly name: string },
): Promise<void> {
  try {
    await manager.streams.info(config.name);
  } catch (error) {
    if (!(error instanceof JetStreamApiError) || error.status !== 404) throw error;
    // Another part may make it in the same moment, the same way.
    await manager.streams.add(config);
  }
}

/** Nobody answered, or nobody could decide: 10005 = the leader does not know of every node yet, 10008 = JetStream is unavailable for now, 10009 = who was asked does not lead. */
function isLeaderless(error: unknown): boolean {
  if (error instanceof JetStreamApiError) return [10_005, 10_008, 10_009].includes(error.code);
  return error instanceof Error && error.name === 'TimeoutError';
}

function attributed(error: unknown): unknown {
  if (error instanceof RolloutError) return error;
  const text = messageOf(error);
  const remedy = /permission/i.test(text)
    ? 'Allow this user the subjects of queue.prefix, $JS.API.>, $KV.>, $O.> and _INBOX.>.'
    : /jetstream|503|no responders/i.test(text)
      ? 'Start the NATS servers with JetStream (-js), for this account too.'
      : 'Look at the log of the NATS servers.';
  return unavailable(`JetStream cannot be used: ${text}`, error, remedy);
}

export function unavailable(
  message: string,
  cause: unknown,
  remedy = 'Start the NATS servers, or correct queue.url and its credentials.',
): RolloutError {
  return new RolloutError('QUEUE_UNAVAILABLE', message, {
    ...{ phase: 'server', field: 'queue.url', cause, remedy },
  });
}

/** Whatever stands before an @ may be a secret. */
function shown(urls: readonly string[]): string {
  return urls.map((url) => url.replace(/\/\/[^@/]*@/, '//…@')).join(', ');
}
