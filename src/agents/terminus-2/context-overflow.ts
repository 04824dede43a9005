/**
 * What happens when a conversation becomes too long. In good time: a full summary, whose failure is only logged. When the engine refuses it: the newest
 * turns go until some room is free, then a full summary, else a short one, else the task and the end of the screen. Should even that be
 * refused, only the first message is kept before it, and after that a canned reply stands in for the model once; twice in a row ends the run.
 */
import { isRolloutError, messageOf } from '../../core/errors.ts';
import type { Logger } from '../../core/logger.ts';
import type { ModelChat } from './model-chat.ts';
import type { ModelReply } from './model-queries.ts';
import { contextTokens } from './model-info.ts';
import type { Terminus2Options } from './options.ts';
import * as texts from './prompts/summary-prompts.ts';
import type { RunLedger } from './run-ledger.ts';
import { isModelFailure, type Handoff, type Summariser } from './summariser.ts';
import type { Terminal } from './terminal/terminal.ts';
import type { TrajectoryRecorder } from './trajectory-recorder.ts';

/** Room for a summary request and its answer. */
const freeTokens = 4000;
const screenTailLength = 1000;

export const cannedReply = 'Technical difficulties. Please continue with the task.';

export interface OverflowParts {
  readonly options: Terminus2Options;
  readonly instruction: string;
  readonly chat: ModelChat;
  readonly summariser: Summariser;
  readonly recorder: TrajectoryRecorder;
  readonly ledger: RunLedger;
  readonly terminal: Terminal;
  readonly logger: Logger;
}

/** `reply` null = the canned one. */
export interface Answer {
  readonly reply: ModelReply | null;
}

export class ContextOverflow {
  readonly #parts: OverflowParts;
  readonly #limitTokens: number;
  /** At most half of the context: a summary leaves a few thousand tokens, which would be summed up again at every turn. */
  readonly #keptFreeTokens: number;
  #wasCanned = false;

  constructor(parts: OverflowParts) {
    this.#parts = parts;
    const { modelInfo, summarizeBelowTokens } = parts.options;
    this.#limitTokens = contextTokens(modelInfo);
    this.#keptFreeTokens = Math.min(summarizeBelowTokens, Math.floor(this.#limitTokens / 2));
  }

  /** The prompt to go on with: the given one, or that of a summary where little room is left. */
  async beforeAsking(prompt: string, signal: AbortSignal): Promise<string> {
    const { options, chat, logger } = this.#parts;
    if (!options.isSummarizing || this.#keptFreeTokens === 0) return prompt;
    if (chat.history.isEmpty) return prompt;
    if (this.#limitTokens - chat.history.tokens >= this.#keptFreeTokens) return prompt;
    try {
      const handoff = await this.#fullSummary(signal);
      await this.#goOnFrom(handoff, texts.compactionNote);
      return handoff.prompt;
    } catch (error) {
      signal.throwIfAborted();
      if (!isModelFailure(error)) throw error;
      logger.log('warn', 'terminus-2: the conversation could not be summed up', {
        code: error.code,
        problem: error.message,
      });
      await this.#noteFailedSummary();
      return prompt;
    }
  }

  /** Asks, and shortens the conversation when it does not fit. CONTEXT_OVERFLOW when summaries are off or nothing helps. */
  async ask(prompt: string, signal: AbortSignal): Promise<Answer> {
    const { chat, options } = this.#parts;
    try {
      const reply = await chat.ask(prompt, signal);
      this.#wasCanned = false;
      return { reply };
    } catch (error) {
      if (!isRolloutError(error, 'CONTEXT_OVERFLOW')) throw error;
      // Nothing was said yet that a summary could shorten.
      if (!options.isSummarizing || chat.history.isEmpty) throw error;
      return await this.#recover(prompt, error, signal);
    }
  }

  async #recover(prompt: string, refusal: Error, signal: AbortSignal): Promise<Answer> {
    const { chat, logger } = this.#parts;
    logger.log('warn', 'terminus-2: the conversation does not fit the context of the model');
    const first = chat.history.messages.slice(0, 1);
    // What was just refused is too long, whatever limit is configured or assumed.
    const limitTokens = Math.min(this.#limitTokens, chat.tokensWith(prompt));
    chat.history.unwind(limitTokens - freeTokens);
    const handoff = await this.#shorten(signal);
    await this.#goOnFrom(handoff, texts.overflowNote);
    for (const retry of [() => undefined, () => chat.replace(first)]) {
      retry();
      try {
        const reply = await chat.ask(handoff.prompt, signal);
        this.#wasCanned = false;
        return { reply };
      } catch (error) {
        if (!isRolloutError(error, 'CONTEXT_OVERFLOW')) throw error;
      }
    }
    if (this.#wasCanned) throw refusal;
    this.#wasCanned = true;
    logger.log('error', 'terminus-2: no conversation fits; a canned reply stands in');
    return { reply: null };
  }

  async #shorten(signal: AbortSignal): Promise<Handoff> {
    const { instruction, summariser, terminal } = this.#parts;
    const full = await this.#attempt('full summary', signal, () => this.#fullSummary(signal));
    if (full !== null) return full;
    const screen = (await terminal.screen(signal)).slice(-screenTailLength);
    const short = await this.#attempt('short summary', signal, () =>
      summariser.short(screen, signal),
    );
    return { history: null, prompt: short ?? texts.screenHandoff({ instruction, screen }) };
  }

  async #attempt<T>(what: string, signal: AbortSignal, work: () => Promise<T>): Promise<T | null> {
    try {
      return await work();
    } catch (error) {
      signal.throwIfAborted();
      if (!isModelFailure(error)) throw error;
      this.#parts.logger.log('warn', `terminus-2: the ${what} failed`, {
        problem: messageOf(error),
      });
      return null;
    }
  }

  async #fullSummary(signal: AbortSignal): Promise<Handoff> {
    const { chat, summariser, terminal } = this.#parts;
    return await summariser.full(chat.history.messages, await terminal.screen(signal), signal);
  }

  async #goOnFrom({ history, prompt }: Handoff, message: string): Promise<void> {
    const { chat, recorder, summariser, ledger } = this.#parts;
    if (history !== null) chat.replace(history);
    const refs = summariser.takeRefs();
    await recorder.addHandoff(
      { message, refs, history: chat.history.messages, prompt },
      ledger.toFinalMetrics(),
    );
  }

  /** The side calls that were made are not forgotten. */
  async #noteFailedSummary(): Promise<void> {
    const { chat, recorder, summariser, ledger } = this.#parts;
    const refs = summariser.takeRefs();
    if (refs.length === 0) return;
    const history = chat.history.messages;
    await recorder.addHandoff(
      { message: texts.failedSummaryNote, refs, history, prompt: null },
      ledger.toFinalMetrics(),
    );
  }
}
