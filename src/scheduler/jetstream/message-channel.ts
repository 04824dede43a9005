/**
 * Messages from one end to another over a stream: each arrives once and in order, whatever happens to connections and servers in between. What waits while one is
 * published goes with the next; one that is larger than the server takes goes in pieces. A number that is missing at the receiver's means that the stream has
 * forgotten it: the channel is broken then, and says so.
 */
import type { OrderedConsumerOptions } from '@nats-io/jetstream';
import { setTimeout as delay } from 'node:timers/promises';
import { deserialize, serialize } from 'node:v8';
import { messageOf } from '../../core/errors.ts';
import type { NatsBus } from './nats-bus.ts';

const publishMs = 3_000;
const retryMs = 100;
const heartbeatMs = 1_000;
const mostPerBatch = 256;

export interface ChannelOptions {
  /** Subject of what is sent, and of what is heard. */
  readonly sends: string;
  readonly hears: string;
  readonly onMessage: (message: unknown) => void;
  /** Nothing arrives any more that could be trusted. */
  readonly onBroken: (why: string) => void;
}

export class MessageChannel {
  readonly #bus: NatsBus;
  readonly #options: ChannelOptions;
  #waiting: unknown[] = [];
  #isPublishing = false;
  #isClosed = false;
  #sent = 0;
  #heard = 0;
  #pieces: Uint8Array[] = [];
  #stop: (() => void) | null = null;
  #idle = Promise.withResolvers<undefined>();

  constructor(bus: NatsBus, options: ChannelOptions) {
    this.#bus = bus;
    this.#options = options;
    this.#idle.resolve(undefined);
    void this.#listen();
  }

  send(message: unknown): void {
    if (this.#isClosed) return;
    this.#waiting.push(message);
    if (!this.#isPublishing) void this.#publishAll();
  }

  /** Resolves when everything sent so far is in the stream, or `ms` are over. */
  async flushed(ms: number): Promise<void> {
    await Promise.race([this.#idle.promise, delay(ms, undefined, { ref: false })]);
  }

  /** Sends and hears nothing any more. Idempotent. */
  close(): void {
    this.#isClosed = true;
    this.#waiting = [];
    this.#stop?.();
  }

  async #publishAll(): Promise<void> {
    this.#isPublishing = true;
    this.#idle = Promise.withResolvers();
    while (this.#waiting.length > 0 && !this.#isClosed) {
      const bytes = serialize(this.#waiting.splice(0, mostPerBatch));
      const most = Math.max(1_024, (this.#bus.connection.info?.max_payload ?? 1024 ** 2) - 16_384);
      for (let at = 0; at < bytes.length; at += most) {
        const end = Math.min(at + most, bytes.length);
        await this.#publish(frame(this.#sent + 1, end === bytes.length, bytes.subarray(at, end)));
        this.#sent += 1;
      }
    }
    this.#isPublishing = false;
    this.#idle.resolve(undefined);
  }

  /** Until it is in the stream: the server knows a repeated one by its id. */
  async #publish(data: Uint8Array): Promise<void> {
    const { sends } = this.#options;
    const msgID = `${sends}.${this.#sent + 1}`;
    while (!this.#isClosed)
      try {
        await this.#bus.js.publish(sends, data, { msgID, timeout: publishMs });
        return;
      } catch {
        await delay(retryMs);
      }
  }

  async #listen(): Promise<void> {
    const { hears, onBroken } = this.#options;
    let after = 0;
    while (!this.#isClosed)
      try {
        const options: Partial<OrderedConsumerOptions> = {
          filter_subjects: hears,
          ...(after > 0 && {
            opt_start_seq: after + 1,
            deliver_policy: 'by_start_sequence' as const,
          }),
        };
        const consumer = await this.#bus.js.consumers.get(this.#bus.names.messageStream, options);
        const messages = await consumer.consume({ idle_heartbeat: heartbeatMs, max_messages: 500 });
        this.#listensTo(messages);
        for await (const message of messages) {
          after = message.seq;
          if (this.#hear(message.data)) continue;
          this.close();
          onBroken(`message ${this.#heard + 1} is missing`);
          return;
        }
      } catch (error) {
        if (error instanceof HearingFailed) {
          this.close();
          onBroken(messageOf(error.cause));
          return;
        }
        await delay(retryMs);
      }
  }

  /** It may have been closed while this was being opened. */
  #listensTo(messages: { stop(): void }): void {
    this.#stop = () => messages.stop();
    if (this.#isClosed) messages.stop();
  }

  /** False = one before it is missing. */
  #hear(data: Uint8Array): boolean {
    const { number, isLast, bytes } = unframe(data);
    if (number <= this.#heard) return true;
    if (number !== this.#heard + 1) return false;
    this.#heard = number;
    this.#pieces.push(bytes);
    if (!isLast) return true;
    const whole = this.#pieces.length === 1 ? bytes : Buffer.concat(this.#pieces);
    this.#pieces = [];
    try {
      for (const message of deserialize(whole) as unknown[])
        if (!this.#isClosed) this.#options.onMessage(message);
    } catch (error) {
      throw new HearingFailed('a message cannot be used', { cause: error });
    }
    return true;
  }
}

class HearingFailed extends Error {}

/** Six bytes of its number, one that says whether a message ends with it. */
function frame(number: number, isLast: boolean, bytes: Uint8Array): Uint8Array {
  const data = Buffer.allocUnsafe(bytes.length + 7);
  data.writeUIntBE(number, 0, 6);
  data.writeUInt8(isLast ? 1 : 0, 6);
  data.set(bytes, 7);
  return data;
}

function unframe(data: Uint8Array): {
  readonly number: number;
  readonly isLast: boolean;
  readonly bytes: Uint8Array;
} {
  const buffer = Buffer.from(data.buffer, data.byteOffset, data.byteLength);
  return {
    number: buffer.readUIntBE(0, 6),
    isLast: buffer.readUInt8(6) === 1,
    bytes: buffer.subarray(7),
  };
}
