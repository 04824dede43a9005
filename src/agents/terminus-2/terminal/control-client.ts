/**
 * A tmux client in control mode on a program of the sandbox that stays open: commands go in as lines, in order; replies come back in the same
 * order. Lost, once and for good, when the program ends, a reply is late, or tmux writes what it should not; the session lives on.
 */
import { LinkedAbort } from '../../../core/linked-abort.ts';
import type { InteractiveProcess } from '../../../environments/environment.ts';
import type { AgentEnvironment } from '../../agent.ts';
import { controlLine } from './control-quote.ts';
import { ControlReader, type ControlBlock, type ControlEvents } from './control-reader.ts';
import {
  sessionTarget,
  tmuxProgram,
  tmuxVariables,
  type TmuxCommand,
  type TmuxReply,
} from './tmux-commands.ts';

/** Longer than any command of ours takes on a machine that still works. */
const replyMs = 30_000;
const closeMs = 3_000;

/** Not an error of the agent: whoever meets it goes another way. */
export class ControlLost extends Error {
  override readonly name = 'ControlLost';
  /** Whether tmux may have run the command all the same. */
  readonly isSent: boolean;

  constructor(message: string, options: { readonly isSent: boolean; readonly cause?: unknown }) {
    super(message, { cause: options.cause });
    this.isSent = options.isSent;
  }
}

export type ControlHooks = Pick<ControlEvents, 'onOutput' | 'onNotice'>;

interface Waiting {
  /** Commands of the line whose replies are to come. */
  left: number;
  readonly onReply: ((reply: TmuxReply) => void) | null;
  readonly reply: PromiseWithResolvers<TmuxReply>;
}

export class ControlClient {
  readonly #reader: ControlReader;
  readonly #queue: Waiting[] = [];
  readonly #attached = Promise.withResolvers<TmuxReply>();
  #program: InteractiveProcess | null = null;
  #lost: ControlLost | null = null;

  private constructor(hooks: ControlHooks) {
    this.#reader = new ControlReader({
      ...hooks,
      onBlock: (block) => this.#take(block),
    });
    this.#attached.promise.catch(() => undefined);
  }

  /** Attaches to the session. ControlLost when tmux refuses. */
  static async open(
    environment: Pick<AgentEnvironment, 'openProcess'>,
    hooks: ControlHooks,
    signal: AbortSignal,
  ): Promise<ControlClient> {
    const client = new ControlClient(hooks);
    client.#program = await environment.openProcess(
      {
        command: `exec ${tmuxProgram} -C attach-session -t ${sessionTarget}`,
        env: tmuxVariables,
        onOutput: (stream, bytes) => {
          if (stream === 'stdout')
            client.#read(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength));
        },
      },
      signal,
    );
    void client.#program.exited.then(() => client.#lose('the control client has ended'));
    const attached = await client
      .#inTime(client.#attached.promise, signal)
      .catch(async (error: unknown) => {
        await client.close();
        throw error;
      });
    if (!attached.isError) return client;
    await client.close();
    throw new ControlLost(`tmux does not attach: ${attached.text}`, { isSent: false });
  }

  get isOpen(): boolean {
    return this.#lost === null;
  }

  /** Runs one command; see `runLine`. */
  run(
    command: TmuxCommand,
    signal: AbortSignal,
    onReply: ((reply: TmuxReply) => void) | null = null,
  ): Promise<TmuxReply> {
    return this.runLine([command], signal, onReply);
  }

  /**
   * Runs commands without a pause between them; the reply is that of the last one that ran, the first to fail. `onReply` is called between what
   * came before the reply and what comes after it. Rejects with ControlLost, or with the reason of `signal`, which takes nothing back.
   */
  async runLine(
    commands: readonly TmuxCommand[],
    signal: AbortSignal,
    onReply: ((reply: TmuxReply) => void) | null = null,
  ): Promise<TmuxReply> {
    signal.throwIfAborted();
    if (this.#lost !== null || this.#program === null)
      throw new ControlLost('the control client is lost', { isSent: false, cause: this.#lost });
    const reply = Promise.withResolvers<TmuxReply>();
    reply.promise.catch(() => undefined); // the write may fail first
    this.#queue.push({ onReply, reply, left: commands.length });
    const written = this.#program.write(controlLine(...commands)).catch((error: unknown) => {
      const message = 'the control client takes no commands';
      reply.reject(new ControlLost(message, { isSent: false, cause: error }));
      this.#lose(message, error);
    });
    return await this.#inTime(
      Promise.all([reply.promise, written]).then(([first]) => first),
      signal,
    );
  }

  /** Lets go of the session: without input the client ends by itself, and is killed only when it does not. Never rejects. Idempotent. */
  async close(): Promise<void> {
    this.#lose('the control client was closed');
    const program = this.#program;
    if (program === null) return;
    program.endInput();
    const { promise, resolve } = Promise.withResolvers<'late'>();
    const grace = setTimeout(() => resolve('late'), closeMs);
    const how = await Promise.race([program.exited, promise]);
    clearTimeout(grace);
    // Not waited for: what is left of an agent is killed by the trial.
    if (how === 'late') program.kill().catch(() => undefined);
  }

  #read(bytes: Buffer): void {
    if (this.#lost !== null) return;
    try {
      this.#reader.write(bytes);
    } catch (error) {
      this.#abandon('tmux broke its protocol', error);
    }
  }

  #take(block: ControlBlock): void {
    const reply = { isError: block.isError, text: block.text.toString('utf8') };
    if (!block.isOurs) {
      this.#attached.resolve(reply);
      return;
    }
    const [waiting] = this.#queue;
    if (waiting === undefined) throw new Error('tmux answered what it was not asked');
    waiting.left -= 1;
    if (waiting.left > 0 && !reply.isError) return;
    this.#queue.shift();
    waiting.onReply?.(reply);
    waiting.reply.resolve(reply);
  }

  /** A program that is no sound tmux need not end with its input, and may write for ever. */
  #abandon(message: string, cause?: unknown): void {
    this.#lose(message, cause);
    this.#program?.kill().catch(() => undefined);
  }

  #lose(message: string, cause?: unknown): void {
    if (this.#lost !== null) return;
    const lost = new ControlLost(message, { isSent: true, cause });
    this.#lost = lost;
    this.#attached.reject(lost);
    for (const { reply } of this.#queue.splice(0)) reply.reject(lost);
    this.#program?.endInput();
  }

  async #inTime<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
    using limit = new LinkedAbort([signal], { ms: replyMs, reason: () => 'late' });
    const stopped = Promise.withResolvers<never>();
    const onAbort = (): void => {
      if (!signal.aborted) this.#abandon(`tmux did not answer within ${replyMs} ms`);
      stopped.reject((signal.aborted ? signal.reason : this.#lost) as Error);
    };
    limit.signal.addEventListener('abort', onAbort, { once: true });
    if (limit.signal.aborted) onAbort();
    try {
      return await Promise.race([work, stopped.promise]);
    } finally {
      limit.signal.removeEventListener('abort', onAbort);
    }
  }
}
