/**
 * The front end of a fleet. Signs of life go both ways; a host that has been silent for longer than it needs to end everything by itself is lost, and each of its leases
 * with it. A rollout is given out as work that any host may take; who claims it first is told what to do, every other is told to drop it.
 */
import { randomBytes } from 'node:crypto';
import { rm } from 'node:fs/promises';
import path from 'node:path';
import type { KeptFile } from '../../wire/rollout/kept-file.ts';
import { messageOf, RolloutError } from '../../core/errors.ts';
import { errorOf, faultOf } from '../../core/error-fault.ts';
import { LinkedAbort, never } from '../../core/linked-abort.ts';
import type { Clock } from '../../core/clock.ts';
import type { Logger } from '../../core/logger.ts';
import type { FairQueueParts } from '../fair-queue.ts';
import type { RolloutQueue } from '../queue.ts';
import type { HostPlaces } from '../scheduler-parts.ts';
import { claimLimit, Claims } from './claims.ts';
import { takeFiles, type CarriedFile } from './file-carrier.ts';
import { FleetHost } from './fleet-host.ts';
import {
  fleetProtocol,
  type FrontBeat,
  type FromHost,
  type HostBeat,
  type HostFacts,
  type WorkItem,
} from './fleet-messages.ts';
import { JetStreamQueue } from './jetstream-queue.ts';
import { MessageChannel } from './message-channel.ts';
import type { NatsBus } from './nats-bus.ts';
import { Placement } from './placement.ts';

/** So many signs of life in a lease. */
const beatsPerLease = 5;
/** A host ends what it runs when it has heard nothing for a lease; it is lost after so many. */
const lostAfterLeases = 1.5;
const leastClaimMs = 30_000;
const retryMs = 100;
const publishMs = 2_000;
/** After the death of a node the others elect a leader first. */
const openMs = 30_000;

export interface FleetFrontOptions {
  readonly version: string;
  readonly leaseMs: number;
  /** What hosts must execute with. */
  readonly backendKind: string;
  /** For what results bring. */
  readonly filesDir: string;
}

export interface FleetFrontParts {
  readonly clock: Clock;
  readonly logger: Logger;
  /** How a lease is kept; for proofs that break it on purpose. */
  readonly makePlacement?: (rolloutId: string, lease: string) => Placement;
}

export class FleetFront implements HostPlaces {
  readonly epoch = randomBytes(8).toString('hex');
  readonly #bus: NatsBus;
  readonly #options: FleetFrontOptions;
  readonly #parts: FleetFrontParts;
  readonly #claims: Claims;
  readonly #life = new LinkedAbort([]);
  readonly #hosts = new Map<string, FleetHost>();
  readonly #placements = new Map<string, Placement>();
  readonly #byRollout = new Map<string, Placement>();
  readonly #refused = new Set<string>();
  readonly #listeners: (() => void)[] = [];
  readonly #startedAt: number;
  #quietUntilMs = 0;
  #lastLease = 0;
  #facts: HostFacts | null = null;

  private constructor(bus: NatsBus, options: FleetFrontOptions, parts: FleetFrontParts) {
    this.#bus = bus;
    this.#options = options;
    this.#parts = parts;
    this.#claims = new Claims(bus.claims);
    this.#startedAt = parts.clock.now().getTime();
  }

  /** Whatever an earlier life gave out and nobody took is withdrawn; where that life was cut short, nothing starts before its hosts have ended what they ran. QUEUE_UNAVAILABLE. */
  static async open(
    bus: NatsBus,
    options: FleetFrontOptions,
    parts: FleetFrontParts,
  ): Promise<FleetFront> {
    const front = new FleetFront(bus, options, parts);
    using limit = claimLimit(never, openMs);
    await bus.purgeWork(limit.signal);
    if (await front.#claims.frontBegins(front.epoch, limit.signal))
      front.#quietUntilMs = parts.clock.monotonicMs() + lostAfterLeases * options.leaseMs;
    await rm(options.filesDir, { recursive: true, force: true });
    front.#listen();
    void front.#keepBeating();
    return front;
  }

  openQueue(parts: FairQueueParts): RolloutQueue {
    return new JetStreamQueue(parts, this);
  }

  places(): number {
    if (this.#parts.clock.monotonicMs() < this.#quietUntilMs) return 0;
    return [...this.#hosts.values()].reduce((sum, { beat }) => sum + beat.slots, 0);
  }

  onPlaces(listener: () => void): void {
    this.#listeners.push(listener);
  }

  get hosts(): readonly HostBeat[] {
    return [...this.#hosts.values()].map(({ beat }) => beat);
  }

  /** Of the host that joined last; null = none has. */
  get facts(): HostFacts | null {
    return this.#facts;
  }

  get logger(): Logger {
    return this.#parts.logger;
  }

  /** null = it is not given out. */
  placement(rolloutId: string): Placement | null {
    return this.#byRollout.get(rolloutId) ?? null;
  }

  filesDirOf(lease: string, what: 'result' | 'calls'): string {
    return path.join(this.#options.filesDir, lease, what);
  }

  /** Never rejects: what an object store cannot give is missing at a path that does not exist, which the archive says. */
  async bring(carried: readonly CarriedFile[], dir: string): Promise<readonly KeptFile[]> {
    try {
      const parts = { store: this.#bus.files, signal: this.#life.signal };
      return carried.length === 0 ? [] : await takeFiles(carried, dir, parts);
    } catch (error) {
      this.logger.log('warn', 'files of a host were not brought here', { error: messageOf(error) });
      return carried.map(({ name }) => ({ name, path: path.join(dir, 'missing') }));
    }
  }

  /** Offers a rollout to all hosts and answers with the lease. */
  give(rolloutId: string): string {
    this.#lastLease += 1;
    const lease = `${this.epoch}-${this.#lastLease}`;
    const { makePlacement } = this.#parts;
    const placement = makePlacement?.(rolloutId, lease) ?? new Placement(rolloutId, lease);
    this.#placements.set(lease, placement);
    this.#byRollout.set(rolloutId, placement);
    void this.#offer(placement);
    return lease;
  }

  /** Nothing of the lease is wanted any more. Idempotent. */
  async end(lease: string): Promise<void> {
    const placement = this.#placements.get(lease);
    if (placement === undefined) return;
    this.#placements.delete(lease);
    const { rolloutId, host } = placement;
    if (this.#byRollout.get(rolloutId) === placement) this.#byRollout.delete(rolloutId);
    await rm(path.join(this.#options.filesDir, lease), { recursive: true, force: true });
    if (host !== null && !host.isLost) host.tell({ kind: 'drop', lease });
    // Whoever claimed it is lost, or was never heard: so that another may, and that one cannot begin.
    else await this.#claims.forget(rolloutId, lease);
  }

  forget(ids: readonly string[]): void {
    for (const host of this.#hosts.values()) host.tell({ kind: 'forget', ids });
  }

  /** Claims of earlier lives whose rollouts have ended. Never rejects. */
  async sweep(isLive: (rolloutId: string) => boolean): Promise<void> {
    try {
      for (const { rolloutId, lease } of await this.#claims.ofOtherEpochs(
        this.epoch,
        this.#life.signal,
      ))
        if (!isLive(rolloutId)) await this.#claims.forget(rolloutId, lease);
    } catch (error) {
      if (!this.#life.signal.aborted)
        this.logger.log('warn', 'old claims were not removed', { error: messageOf(error) });
    }
  }

  async close(): Promise<void> {
    if (this.#life.signal.aborted) return;
    this.#life.abort(new Error('the front end has ended'));
    await Promise.all([...this.#hosts.values()].map((host) => host.flushed(1_000)));
    for (const host of this.#hosts.values()) host.lose('the front end has ended');
    await this.#claims.frontEnds().catch(() => undefined);
  }

  async #offer({ rolloutId, lease, placed }: Placement): Promise<void> {
    const { js, names } = this.#bus;
    const { clock } = this.#parts;
    const item: WorkItem = { rolloutId, epoch: this.epoch, lease };
    const isWanted = (): boolean => this.#placements.has(lease) && !this.#life.signal.aborted;
    const claimMs = Math.max(leastClaimMs, 3 * this.#options.leaseMs);
    using late = new LinkedAbort([this.#life.signal]);
    const unclaimed = clock.sleep(claimMs, late.signal).then(
      () => this.#placements.get(lease)?.fail(noHost()),
      () => undefined,
    );
    while (isWanted())
      try {
        await js.publish(names.work, JSON.stringify(item), { msgID: lease, timeout: publishMs });
        break;
      } catch (error) {
        this.logger.log('debug', 'work was not offered', { error: messageOf(error) });
        await clock.sleep(retryMs, this.#life.signal).catch(() => undefined);
      }
    await Promise.race([placed.catch(() => undefined), unclaimed]);
    late.abort(new Error('not needed any more'));
  }

  #listen(): void {
    const { connection, names } = this.#bus;
    connection.subscribe(names.hostBeat, {
      callback: (error, message) => {
        if (error === null) this.#heard(message.json());
      },
    });
  }

  async #keepBeating(): Promise<void> {
    const { clock } = this.#parts;
    const { leaseMs } = this.#options;
    const everyMs = leaseMs / beatsPerLease;
    let beforeMs = clock.monotonicMs();
    while (!this.#life.signal.aborted) {
      this.#beat(null);
      const now = clock.monotonicMs();
      // Who was not at work itself has not heard anybody.
      const wasAway = now - beforeMs > leaseMs / 2;
      beforeMs = now;
      for (const host of this.#hosts.values())
        if (wasAway) host.seenMs = Math.max(host.seenMs, now - leaseMs);
        else if (now - host.seenMs > lostAfterLeases * leaseMs) this.#lose(host, 'it is silent');
      this.#changed();
      await clock.sleep(everyMs, this.#life.signal).catch(() => undefined);
    }
  }

  #beat(lost: string | null): void {
    const { connection, names } = this.#bus;
    const { version, backendKind } = this.#options;
    const told: FrontBeat = {
      ...{ protocol: fleetProtocol, version, epoch: this.epoch, startedAt: this.#startedAt },
      ...{ backendKind, lost },
      heard: Object.fromEntries([...this.#hosts.values()].map(({ id, beat }) => [id, beat.saidMs])),
    };
    connection.publish(names.frontBeat, JSON.stringify(told));
  }

  #heard(beat: HostBeat): void {
    const { logger, clock } = this.#parts;
    if (this.#life.signal.aborted) return;
    const known = this.#hosts.get(beat.host);
    if (known !== undefined) {
      const had = known.beat.slots;
      known.beat = beat;
      known.seenMs = clock.monotonicMs();
      if (beat.epoch !== this.epoch) this.#lose(known, 'it works for another front end');
      else if (beat.slots > had) this.#changed();
      return;
    }
    const problem = this.#problemOf(beat);
    if (problem !== null) {
      if (!this.#refused.has(beat.host))
        logger.log('error', 'a host was refused', { host: beat.name, problem });
      this.#refused.add(beat.host);
      return;
    }
    if (beat.epoch !== this.epoch) return;
    if (this.#refused.has(beat.host)) this.#beat(beat.host);
    else this.#join(beat);
  }

  #problemOf({ protocol, version, facts }: HostBeat): string | null {
    if (protocol !== fleetProtocol)
      return `it speaks protocol ${protocol} (slipway ${version}), this front end ${fleetProtocol} (slipway ${this.#options.version}): update the older one`;
    const { backendKind } = this.#options;
    return facts.kind === backendKind ? null : `its backend is ${facts.kind}, not ${backendKind}`;
  }

  #join(beat: HostBeat): void {
    const { clock, logger } = this.#parts;
    const { messages } = this.#bus.names;
    const host = new FleetHost(
      beat,
      clock.monotonicMs(),
      (hear) =>
        new MessageChannel(this.#bus, {
          sends: `${messages}.${this.epoch}.${beat.host}.to`,
          hears: `${messages}.${this.epoch}.${beat.host}.from`,
          onMessage: (message) => hear(message as FromHost), // `worker-host.ts` says nothing else
          onBroken: (why) => this.#lose(host, why),
        }),
      (message, from) => this.#hear(message, from),
    );
    this.#hosts.set(host.id, host);
    this.#facts = beat.facts;
    logger.log('info', 'a host has joined', { host: beat.name, slots: beat.slots });
    this.#changed();
  }

  #lose(host: FleetHost, why: string): void {
    if (host.isLost) return;
    this.#hosts.delete(host.id);
    this.#refused.add(host.id);
    host.lose(why);
    this.logger.log('warn', 'a host is lost', { host: host.beat.name, why });
    for (const placement of this.#placements.values())
      if (placement.host === host && host.loss !== null) placement.fail(host.loss);
    this.#changed();
  }

  #hear(message: FromHost, host: FleetHost): void {
    if (!('lease' in message)) return;
    const { lease } = message;
    const placement = this.#placements.get(lease);
    if (message.kind === 'claimed') {
      if (placement?.take(host) !== true) host.tell({ kind: 'drop', lease });
      return;
    }
    if (message.kind === 'refused') {
      placement?.fail(begunElsewhere());
      return;
    }
    const execution = placement?.host === host ? placement.execution : null;
    switch (message.kind) {
      case 'progress':
        execution?.hooks?.progress(message.progress);
        break;
      case 'hook':
        if (execution !== null && message.result !== null) execution.activity = message.activity;
        void this.#hook(message, host, execution?.hooks ?? null);
        break;
      case 'ended': {
        const { result, activity } = message;
        if (execution !== null) execution.activity = activity;
        void this.bring(result.files, this.filesDirOf(lease, 'result')).then((files) =>
          execution?.end({ ...result, files }),
        );
        break;
      }
      case 'broken':
        execution?.fail(errorOf(message.fault));
    }
  }

  async #hook(
    { number, result }: Extract<FromHost, { readonly kind: 'hook' }>,
    host: FleetHost,
    hooks: NonNullable<Placement['execution']>['hooks'],
  ): Promise<void> {
    try {
      if (hooks === null) throw new TypeError('the rollout is not this host’s any more');
      await (result === null
        ? hooks.agentBegins()
        : hooks.workflowCompleted({ ...result, files: [] }));
      host.tell({ kind: 'hooked', number, fault: null });
    } catch (error) {
      host.tell({ kind: 'hooked', number, fault: faultOf(error) });
    }
  }

  #changed(): void {
    for (const listener of this.#listeners) listener();
  }
}

function noHost(): RolloutError {
  return new RolloutError('WORKER_LOST', 'no host took the rollout in time', { phase: 'queue' });
}

function begunElsewhere(): RolloutError {
  return new RolloutError(
    'ROLLOUT_INTERRUPTED',
    'the rollout server died while the rollout ran; its agent had begun, so it was not run again',
    { phase: 'agent' },
  );
}
