/**
 * Replaces a long conversation by a short one. Three side calls: the model sums up its work, asks (without the conversation before it) what it would
 * need to know to go on from the summary, and answers that with the conversation before it. The conversation then begins with its first message and
 * those questions, and the answers are the next prompt. Each side call has its own document and is counted, whether or not the whole succeeds.
 */
import { isRolloutError, RolloutError } from '../../core/errors.ts';
import type { ChatMessage } from '../../engines/chat-message.ts';
import type { AtifSubagentRef } from '../../wire/atif/atif.ts';
import { userMessage } from './chat-history.ts';
import type { ModelQueries } from './model-queries.ts';
import * as texts from './prompts/summary-prompts.ts';
import type { RunLedger } from './run-ledger.ts';
import { assistantMessage } from './model-chat.ts';
import type { SubagentCall, TrajectoryRecorder } from './trajectory-recorder.ts';

export interface SummaryParts {
  readonly queries: ModelQueries;
  readonly ledger: RunLedger;
  readonly recorder: TrajectoryRecorder;
  readonly instruction: string;
  readonly sendsReasoning: boolean;
}

export interface Handoff {
  /** null = it goes on as it is. */
  readonly history: readonly ChatMessage[] | null;
  readonly prompt: string;
}

export class Summariser {
  readonly #parts: SummaryParts;
  /** Of the side calls since the last time they were taken. */
  readonly #refs: AtifSubagentRef[] = [];

  constructor(parts: SummaryParts) {
    this.#parts = parts;
  }

  takeRefs(): readonly AtifSubagentRef[] {
    return this.#refs.splice(0);
  }

  /** `history` is not empty. Throws the failure of a side call, or ENGINE_RESPONSE_INVALID when one says nothing. */
  async full(
    history: readonly ChatMessage[],
    screen: string,
    signal: AbortSignal,
  ): Promise<Handoff> {
    const { instruction } = this.#parts;
    const index = (this.#parts.ledger.summaries += 1);
    const request = texts.summaryRequest({ instruction });
    const summary = await this.#ask(
      { index, role: 'summary', purpose: 'sums up the work so far', copied: history },
      { messages: history, prompt: request },
      signal,
    );
    const questionPrompt = texts.questionsRequest({
      instruction,
      summary: textOf(summary),
      screen,
    });
    const questions = await this.#ask(
      { index, role: 'questions', purpose: 'asks what the summary leaves open', copied: [] },
      { messages: [], prompt: questionPrompt },
      signal,
    );
    const known = [...history, userMessage(request), summary];
    const answers = await this.#ask(
      { index, role: 'answers', purpose: 'answers the questions', copied: known },
      { messages: known, prompt: texts.answersRequest({ questions: textOf(questions) }) },
      signal,
    );
    return {
      history: [...history.slice(0, 1), userMessage(questionPrompt), questions],
      prompt: texts.handoffPrompt({ answers: textOf(answers) }),
    };
  }

  /** One call that knows the task and the end of the screen only; answers the next prompt. */
  async short(screenTail: string, signal: AbortSignal): Promise<string> {
    const { instruction, ledger } = this.#parts;
    const reply = await this.#ask(
      {
        index: ledger.summaries,
        role: 'short-summary',
        purpose: 'says in short how to go on',
        copied: [],
      },
      { messages: [], prompt: texts.shortSummaryRequest({ instruction, screen: screenTail }) },
      signal,
    );
    return texts.shortSummaryHandoff({ instruction, summary: textOf(reply) });
  }

  async #ask(
    call: Omit<SubagentCall, 'prompt' | 'result'>,
    asked: { readonly messages: readonly ChatMessage[]; readonly prompt: string },
    signal: AbortSignal,
  ): Promise<ChatMessage> {
    const { queries, ledger, recorder, sendsReasoning } = this.#parts;
    const messages = [...asked.messages, userMessage(asked.prompt)];
    const reply = await queries.ask(messages, signal);
    ledger.addSubagent(reply, messages);
    const { result } = reply;
    this.#refs.push(await recorder.addSubagent({ ...call, prompt: asked.prompt, result }));
    if (result.text.trim() === '') throw saidNothing(call.role);
    return assistantMessage(result, { sendsReasoning });
  }
}

/** Whether a summary may be given up for this failure: one of the model, not of our disk or our code. */
export function isModelFailure(error: unknown): error is RolloutError {
  return isRolloutError(error) && error.phase === 'model-call';
}

function textOf({ content }: ChatMessage): string {
  return typeof content === 'string' ? content : '';
}

function saidNothing(role: string): RolloutError {
  return new RolloutError('ENGINE_RESPONSE_INVALID', `the reply for the ${role} is empty`, {
    phase: 'model-call',
    retryable: false,
  });
}
