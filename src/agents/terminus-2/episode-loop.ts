/**
 * The turns of one run. A turn is one call of the model: its reply is parsed, its commands are typed, what the terminal shows next is the next prompt. A reply
 * that cannot be used (not parsed, or cut off by the output limit) is a turn too: it is answered with what was wrong, and nothing is typed. The task is
 * done when the model has said so in two turns with nothing but unusable replies between them; commands of both are typed. A terminal that has
 * gone ends the run quietly, a sandbox that has gone does not.
 */
import type { Logger } from '../../core/logger.ts';
import type { AgentEnvironment } from '../agent.ts';
import { cannedReply, type ContextOverflow } from './context-overflow.ts';
import type { ModelReply } from './model-queries.ts';
import type { Terminus2Options } from './options.ts';
import type { ParsedReply, ReplyParser } from './parsers/parsed-reply.ts';
import * as texts from './prompts/episode-prompts.ts';
import type { RunLedger } from './run-ledger.ts';
import type { Terminal } from './terminal/terminal.ts';
import type { TrajectoryRecorder } from './trajectory-recorder.ts';
import { turnStep } from './turn-step.ts';

const maxDurationSec = 60;
const defaultDurationSec = 1;

export interface EpisodeParts {
  readonly options: Terminus2Options;
  readonly instruction: string;
  readonly terminal: Terminal;
  readonly environment: Pick<AgentEnvironment, 'exec'>;
  readonly parser: ReplyParser;
  readonly overflow: ContextOverflow;
  readonly recorder: TrajectoryRecorder;
  readonly ledger: RunLedger;
  readonly logger: Logger;
  /** After each turn: what is known so far. */
  readonly report: () => void;
}

export class EpisodeLoop {
  readonly #parts: EpisodeParts;
  #isCompletionPending = false;

  constructor(parts: EpisodeParts) {
    this.#parts = parts;
  }

  async run(firstPrompt: string, signal: AbortSignal): Promise<void> {
    const { options, terminal, recorder, overflow, ledger, report, logger } = this.#parts;
    await recorder.addUser(firstPrompt);
    let prompt: string | null = firstPrompt;
    for (let episode = 0; episode < options.maxTurns; episode += 1) {
      signal.throwIfAborted();
      if (!(await terminal.isAlive(signal))) {
        await this.#assertSandbox(signal);
        logger.log('info', 'terminus-2: the terminal has ended');
        return;
      }
      ledger.episodes = episode + 1;
      const asked = await overflow.beforeAsking(prompt, signal);
      const { reply } = await overflow.ask(asked, signal);
      report();
      prompt = await this.#turn({ episode, reply }, signal);
      await recorder.checkpoint(ledger.toFinalMetrics());
      report();
      if (prompt === null) return;
    }
    logger.log('warn', 'terminus-2: the limit of turns is reached');
  }

  /** Answers the next prompt; null = done. */
  async #turn(turn: Turn, signal: AbortSignal): Promise<string | null> {
    const { parser } = this.#parts;
    const text = turn.reply?.result.text ?? cannedReply;
    const isTruncated = turn.reply?.result.finishReason === 'length';
    const usable = isTruncated ? parser.salvage(text) : text;
    const parsed = parser.parse(usable ?? text);
    if (usable === null) return await this.#refuse(turn, this.#truncation(parsed));
    if (parsed.error !== '')
      return await this.#refuse(turn, texts.parseErrorPrompt(parser.name, parsed));
    return await this.#execute(turn, isTruncated ? withSalvageNote(parsed) : parsed, signal);
  }

  #truncation({ warnings }: ParsedReply): string {
    const { modelInfo } = this.#parts.options;
    return texts.truncationPrompt({ maxTokens: modelInfo.max_output_tokens ?? null, warnings });
  }

  async #refuse(turn: Turn, answer: string): Promise<string> {
    const { recorder, options } = this.#parts;
    const step = turnStep({ ...turn, parsed: null, observation: answer }, { recorder, options });
    await recorder.addAgent(step, turn.reply?.result ?? null);
    return answer;
  }

  async #execute(turn: Turn, parsed: ParsedReply, signal: AbortSignal): Promise<string | null> {
    const { recorder, options } = this.#parts;
    const capped = { ...parsed, commands: parsed.commands.map(cappedCommand) };
    const record = async (observation: string): Promise<void> => {
      const step = turnStep({ ...turn, parsed: capped, observation }, { recorder, options });
      await recorder.addAgent(step, turn.reply?.result ?? null);
    };
    let output: string;
    try {
      output = await this.#type(capped, signal);
    } catch (error) {
      // What the model did is part of the record also when what came of it is not known.
      await record('');
      throw error;
    }
    const isDone = capped.isTaskComplete && this.#isCompletionPending;
    const observation = isDone ? output : this.#observation(capped, output);
    this.#isCompletionPending = capped.isTaskComplete;
    await record(observation);
    return isDone ? null : observation;
  }

  #observation({ isTaskComplete, warnings }: ParsedReply, output: string): string {
    if (isTaskComplete) return texts.completionQuestion(this.#parts.parser.name, output);
    return warnings === '' ? output : texts.warningsPrompt({ warnings, output });
  }

  async #type({ commands }: ParsedReply, signal: AbortSignal): Promise<string> {
    const { terminal } = this.#parts;
    try {
      for (const { keystrokes, durationSec } of commands)
        await terminal.send(keystrokes, { durationSec }, signal);
      return await terminal.readOutput(signal);
    } catch (error) {
      signal.throwIfAborted();
      if (await terminal.isAlive(signal)) throw error;
      // Whether its sandbox has gone too is found out before the next turn.
      return texts.terminalEnded;
    }
  }

  /** Throws ENVIRONMENT_LOST, or whatever keeps a command from running. */
  async #assertSandbox(signal: AbortSignal): Promise<void> {
    await this.#parts.environment.exec({ command: ':', timeoutMs: 30_000 }, signal);
  }
}

interface Turn {
  readonly episode: number;
  /** null = a canned reply stands in. */
  readonly reply: ModelReply | null;
}

/** A duration of the model's is a number of any kind. */
function cappedCommand<T extends { readonly durationSec: number }>(command: T): T {
  const { durationSec } = command;
  const wanted = Number.isNaN(durationSec) ? defaultDurationSec : durationSec;
  return { ...command, durationSec: Math.min(Math.max(wanted, 0), maxDurationSec) };
}

function withSalvageNote(parsed: ParsedReply): ParsedReply {
  const note = `- ${texts.salvageWarning}`;
  return { ...parsed, warnings: [note, parsed.warnings].filter((line) => line !== '').join('\n') };
}
