/**
 * A host of a fleet: takes as much work as it has free slots, claims it, and does with it what the front end says. It works for one life of a front end at a time. Its
 * lease runs from the last sign of life that the front end says to have heard of it, so that both ways must be open. When the lease is over, or another front end has
 * come, it ends everything it runs before it takes anything new, under a new name of its own: whoever was told that it is lost can rely on that.
 */
import { randomBytes } from 'node:crypto';
import type { Consumer, JsMsg } from '@nats-io/jetstream';
import type { ExecutionBackend } from '../../backends/execution-backend.ts';
import type { Clock } from '../../core/clock.ts';
import { errorOf, faultOf } from '../../core/error-fault.ts';
import { messageOf, RolloutError } from '../../core/errors.ts';
import { LinkedAbort } from '../../core/linked-abort.ts';
import type { Logger } from '../../core/logger.ts';
import type { GatewayControl } from '../../gateway/gateway-control.ts';
import { claimLimit, type ClaimBook } from './claims.ts';
import {
  fleetProtocol,
  type FrontBeat,
  type FromHost,
  type HostBeat,
  type ToHost,
  type WorkItem,
} from './fleet-messages.ts';
import { HeardFront } from './heard-front.ts';
import { HeldWork } from './held-work.ts';
import { MessageChannel } from './message-channel.ts';
import type { NatsBus } from './nats-bus.ts';

const beatsPerLease = 5;
const pullMs = 2_000;
const retryMs = 100;
const lastWordsMs = 2_000;

export interface WorkerHostOptions {
  /** For people. */
  readonly name: string;
  readonly version: string;
  readonly slots: number;
  readonly leaseMs: number;
}

export interface WorkerHostParts {
  readonly bus: NatsBus;
  readonly claims: ClaimBook;
  readonly backend: ExecutionBackend;
  readonly gateway: GatewayControl;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Hears the secrets of a rollout before anything can log them; what it answers ends that. */
  readonly maskSecrets: (secrets: readonly string[]) => () => void;
}

/** What it does for one life of a front end, under one name. */
interface Term {
  readonly epoch: string;
  readonly host: string;
  readonly channel: MessageChannel;
  readonly over: LinkedAbort;
  readonly held: Map<string, HeldWork>;
  /** The front end has heard it then, at the earliest. */
  heardMs: number;
}

export class WorkerHost {
  readonly #options: WorkerHostOptions;
  readonly #parts: WorkerHostParts;
  readonly #life = new LinkedAbort([]);
  readonly #front: HeardFront;
  readonly #work: Promise<void>[] = [];
  #term: Term | null = null;
  #changing: Promise<void> = Promise.resolve();
  #isDraining = false;
  #leaving = 0;
  #lastHook = 0;
  #freed = Promise.withResolvers<undefined>();

  constructor(options: WorkerHostOptions, parts: WorkerHostParts) {
    this.#options = options;
    this.#parts = parts;
    const { version, leaseMs } = options;
    const { kind: backendKind } = parts.backend;
    this.#front = new HeardFront({ version, leaseMs, backendKind }, parts);
  }

  start(): void {
    const { connection, names } = this.#parts.bus;
    connection.subscribe(names.frontBeat, {
      callback: (error, message) => {
        if (error === null) this.#heard(message.json());
      },
    });
    this.#work.push(this.#keepBeating(), this.#takeWork());
  }

  /** Rollouts that it holds, those that it is ending included. */
  get running(): number {
    return this.#leaving + (this.#term?.held.size ?? 0);
  }

  /**
   * Takes nothing more. What has begun may go on for `drainMs` or until `hurry` fires; what has not goes back. Then what is left is ended. Once.
   */
  async stop({
    drainMs,
    hurry,
  }: {
    readonly drainMs: number;
    readonly hurry: AbortSignal;
  }): Promise<void> {
    const { clock } = this.#parts;
    this.#isDraining = true;
    this.#beat();
    const term = this.#term;
    if (term !== null) {
      for (const held of term.held.values()) if (!held.hasBegun) held.giveUp(stopping());
      using limit = new LinkedAbort([hurry, term.over.signal]);
      await Promise.race([
        this.#emptied(term),
        clock.sleep(drainMs, limit.signal).catch(() => undefined),
      ]);
      limit.abort(new Error('not needed any more'));
      for (const held of term.held.values()) held.giveUp(stopping());
      await Promise.race([
        this.#emptied(term),
        clock.sleep(lastWordsMs, this.#life.signal).catch(() => undefined),
      ]);
      await term.channel.flushed(lastWordsMs);
    }
    await this.#change(null);
    this.#life.abort(new Error('the worker has ended'));
    this.#wake();
    await Promise.all(this.#work);
  }

  #heard(beat: FrontBeat): void {
    const { logger } = this.#parts;
    if (!this.#front.accept(beat) || this.#life.signal.aborted) return;
    const term = this.#term;
    if (term !== null) term.heardMs = Math.max(term.heardMs, beat.heard[term.host] ?? 0);
    if (beat.lost !== null && beat.lost === term?.host) {
      logger.log('warn', 'the front end has given this worker up: what runs is ended', {
        rollouts: this.running,
      });
      void this.#change(null);
      return;
    }
    if (term?.epoch !== beat.epoch) void this.#change(beat.epoch);
  }

  async #keepBeating(): Promise<void> {
    const { clock, logger } = this.#parts;
    const { leaseMs } = this.#options;
    while (!this.#life.signal.aborted) {
      if (this.#leftMs() <= 0) {
        logger.log('warn', 'the front end does not answer: what runs for it is ended', {
          rollouts: this.running,
        });
        await this.#change(null);
      }
      this.#beat();
      const ms = Math.min(leaseMs / beatsPerLease, this.#leftMs());
      await clock.sleep(Math.max(0, ms), this.#life.signal).catch(() => undefined);
    }
  }

  /** Of its lease. */
  #leftMs(): number {
    if (this.#term === null) return Infinity;
    return this.#term.heardMs + this.#options.leaseMs - this.#parts.clock.monotonicMs();
  }

  #beat(): void {
    const { bus, backend, clock } = this.#parts;
    const term = this.#term;
    if (term === null) return;
    const { name, version, slots } = this.#options;
    const { kind, capturesFinalResult } = backend;
    const beat: HostBeat = {
      ...{ protocol: fleetProtocol, version, name, host: term.host, epoch: term.epoch },
      ...{ slots: this.#isDraining ? 0 : slots, saidMs: clock.monotonicMs() },
      facts: { kind, capturesFinalResult, health: backend.health() },
    };
    bus.connection.publish(bus.names.hostBeat, JSON.stringify(beat));
  }

  /** Ends what runs, then works for `epoch`; null = for nobody. One change after the other. */
  #change(epoch: string | null): Promise<void> {
    this.#changing = this.#changing.then(async () => {
      const before = this.#term;
      if (before !== null && before.epoch === epoch) return;
      if (before !== null) {
        this.#term = null;
        this.#leaving = before.held.size;
        before.over.abort(fenced());
        before.channel.close();
        await Promise.all([...before.held.values()].map((held) => held.discard(fenced())));
        this.#leaving = 0;
      }
      if (epoch !== null && !this.#isDraining) this.#term = this.#open(epoch);
      this.#beat();
      this.#wake();
    });
    return this.#changing;
  }

  #open(epoch: string): Term {
    const { bus } = this.#parts;
    const host = randomBytes(8).toString('hex');
    const held = new Map<string, HeldWork>();
    const { messages } = bus.names;
    const channel = new MessageChannel(bus, {
      sends: `${messages}.${epoch}.${host}.from`,
      hears: `${messages}.${epoch}.${host}.to`,
      onMessage: (message) => this.#hear(message as ToHost, held, channel), // `fleet-front.ts` says nothing else
      onBroken: (why) => {
        this.#parts.logger.log('error', 'what the front end says is lost: what runs is ended', {
          why,
        });
        if (this.#term?.host === host) void this.#change(null);
      },
    });
    const heardMs = this.#parts.clock.monotonicMs();
    return { epoch, host, channel, held, heardMs, over: new LinkedAbort([]) };
  }

  #hear(message: ToHost, held: Map<string, HeldWork>, channel: MessageChannel): void {
    switch (message.kind) {
      case 'ask':
        void this.#answer(message, held, channel);
        break;
      case 'execute':
        held.get(message.lease)?.execute(message.request);
        break;
      case 'hooked':
        for (const one of held.values())
          if (one.hooked(message.number, message.fault === null ? null : errorOf(message.fault)))
            break;
        break;
      case 'drop':
        void this.#drop(message.lease, held);
        break;
      case 'forget':
        this.#parts.backend.forget?.(message.ids).catch((error: unknown) =>
          this.#parts.logger.log('warn', 'what trials left could not be removed', {
            error: messageOf(error),
          }),
        );
    }
  }

  async #answer(
    { number, lease, call }: Extract<ToHost, { readonly kind: 'ask' }>,
    held: ReadonlyMap<string, HeldWork>,
    channel: MessageChannel,
  ): Promise<void> {
    const say = (message: FromHost): void => channel.send(message);
    try {
      const one = held.get(lease);
      say({ kind: 'answer', number, value: one === undefined ? null : await one.carryOut(call) });
    } catch (error) {
      say({ kind: 'refusal', number, fault: faultOf(error) });
    }
  }

  async #drop(lease: string, held: Map<string, HeldWork>): Promise<void> {
    const one = held.get(lease);
    if (one === undefined) return;
    try {
      await one.discard(
        new RolloutError('CANCELLED', 'it is not wanted any more', { phase: 'server' }),
      );
      await this.#parts.claims.forget(one.item.rolloutId, lease);
    } catch (error) {
      this.#parts.logger.log('warn', 'a claim was not removed', {
        rolloutId: one.item.rolloutId,
        error: messageOf(error),
      });
    } finally {
      held.delete(lease);
      this.#wake();
    }
  }

  async #takeWork(): Promise<void> {
    const { bus, clock, logger } = this.#parts;
    let consumer: Consumer | null = null;
    while (!this.#life.signal.aborted) {
      const term = this.#term;
      if (term === null || this.#isDraining || term.held.size >= this.#options.slots) {
        await this.#freed.promise;
        continue;
      }
      try {
        consumer ??= await bus.js.consumers.get(bus.names.workStream, bus.names.workers);
        const message = await this.#next(consumer);
        if (message !== null) this.#taken(message, term);
      } catch (error) {
        consumer = null;
        logger.log('debug', 'work could not be taken', { error: messageOf(error) });
        await clock.sleep(retryMs, this.#life.signal).catch(() => undefined);
      }
    }
  }

  /** A request that the server never got has no end of its own. What comes for it afterwards is delivered again. */
  async #next(consumer: Consumer): Promise<JsMsg | null> {
    using late = new LinkedAbort([this.#life.signal]);
    const over = this.#parts.clock.sleep(2 * pullMs, late.signal).then(() => {
      throw new Error('the queue does not answer');
    });
    const asked = consumer.next({ expires: pullMs });
    asked.catch(() => undefined);
    over.catch(() => undefined);
    try {
      return await Promise.race([asked, over]);
    } finally {
      late.abort(new Error('not needed any more'));
    }
  }

  #taken(message: JsMsg, term: Term): void {
    const item = message.json<WorkItem>();
    // Of a front end that it does not know yet, or that is over; or it is not to take anything any more.
    if (item.epoch !== term.epoch || this.#term !== term || this.#isDraining) {
      message.nak(retryMs);
      return;
    }
    // Given out once, delivered twice.
    if (term.held.has(item.lease)) {
      message.ack();
      return;
    }
    const held = new HeldWork(item, {
      ...this.#parts,
      signal: term.over.signal,
      say: (said) => term.channel.send(said),
      nextHook: () => (this.#lastHook += 1),
    });
    term.held.set(item.lease, held);
    void this.#claim(held, message, term);
  }

  async #claim(held: HeldWork, message: JsMsg, term: Term): Promise<void> {
    const { item } = held;
    using limit = claimLimit(term.over.signal);
    try {
      const answer = await this.#parts.claims.claim(
        { ...item, host: term.host, hasBegun: false },
        // What this life of the front end gave out it takes back itself.
        (other) => other.epoch !== term.epoch,
        limit.signal,
      );
      if (answer.kind === 'ours') {
        held.claimed(answer.held);
        message.ack();
        term.channel.send({ kind: 'claimed', lease: item.lease });
        return;
      }
      message.term();
      if (answer.by.hasBegun) term.channel.send({ kind: 'refused', lease: item.lease });
    } catch (error) {
      if (!term.over.signal.aborted)
        this.#parts.logger.log('warn', 'a rollout was not claimed', {
          rolloutId: item.rolloutId,
          error: messageOf(error),
        });
    }
    term.held.delete(item.lease);
    this.#wake();
  }

  /** Resolves when the front end has let go of everything. */
  async #emptied(term: Term): Promise<void> {
    while (term.held.size > 0 && !term.over.signal.aborted) await this.#freed.promise;
  }

  #wake(): void {
    const { resolve } = this.#freed;
    this.#freed = Promise.withResolvers();
    resolve(undefined);
  }
}

function fenced(): RolloutError {
  return new RolloutError('WORKER_LOST', 'its host has lost the front end', { phase: 'server' });
}

function stopping(): RolloutError {
  return new RolloutError('WORKER_LOST', 'its host is being stopped', { phase: 'server' });
}
