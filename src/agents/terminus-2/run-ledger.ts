/** What a run has used and said so far: the numbers of its result and of its trajectory's final metrics. */
import type { ModelResult, ModelUsage } from '../../engines/model-call.ts';
import { TrajectoryRedactor } from '../../trajectory/redact.ts';
import type { AtifFinalMetrics } from '../../wire/atif/atif.ts';
import type { AgentResult } from '../../wire/harbor/trial-result.ts';
import type { ChatMessage } from '../../engines/chat-message.ts';
import { costUsd, type ModelInfo } from './model-info.ts';
import type { ModelReply } from './model-queries.ts';
import { ConversationDetails } from './rollout-details.ts';

/** What the engine said, else what can be counted; null = neither. */
export function usageOf({ usage, promptIds, outputIds }: ModelResult): ModelUsage | null {
  if (usage !== null) return usage;
  if (promptIds === null || outputIds === null) return null;
  return {
    promptTokens: promptIds.length,
    completionTokens: outputIds.length,
    cachedTokens: null,
    reasoningTokens: null,
  };
}

interface LedgerParts {
  readonly modelInfo: ModelInfo;
  readonly secrets: readonly string[];
  readonly collectsRolloutDetails: boolean;
}

export class RunLedger {
  readonly #parts: LedgerParts;
  readonly #redactor: TrajectoryRedactor;
  readonly #main = new ConversationDetails();
  readonly #subagents: ConversationDetails[] = [];
  readonly #requestTimesMs: number[] = [];
  #tokens = { prompt: 0, completion: 0, cached: 0, costUsd: 0 };
  #isMainTold = false;
  episodes = 0;
  summaries = 0;

  constructor(parts: LedgerParts) {
    this.#parts = parts;
    this.#redactor = new TrajectoryRedactor(parts.secrets);
  }

  /** A reply of the main conversation to `newMessages`, those that no earlier call has carried. */
  addTurn(reply: ModelReply, newMessages: readonly ChatMessage[]): void {
    this.#requestTimesMs.push(reply.durationMs);
    this.#addTokens(reply.result);
    if (!this.#parts.collectsRolloutDetails) return;
    this.#isMainTold ||= this.#holdsSecret(newMessages, reply.result);
    this.#main.add(reply.result, { isTold: this.#isMainTold });
  }

  /** A reply of a side conversation, whose messages are all given. */
  addSubagent({ result }: ModelReply, messages: readonly ChatMessage[]): void {
    this.#addTokens(result);
    if (!this.#parts.collectsRolloutDetails) return;
    const details = new ConversationDetails();
    details.add(result, { isTold: this.#holdsSecret(messages, result) });
    this.#subagents.push(details);
  }

  toResult(allMessages: readonly ChatMessage[] | null): AgentResult {
    const details = [this.#main, ...this.#subagents].map((part) => part.toDetail());
    return {
      n_input_tokens: this.#tokens.prompt,
      n_output_tokens: this.#tokens.completion,
      n_cache_tokens: this.#tokens.cached,
      cost_usd: this.#costUsd,
      rollout_details: details.filter((detail) => detail !== null),
      metadata: {
        n_episodes: this.episodes,
        api_request_times_msec: [...this.#requestTimesMs],
        summarization_count: this.summaries,
        ...(allMessages !== null && { all_messages: allMessages }),
      },
    };
  }

  toFinalMetrics(): AtifFinalMetrics {
    return {
      total_prompt_tokens: this.#tokens.prompt,
      total_completion_tokens: this.#tokens.completion,
      total_cached_tokens: this.#tokens.cached,
      total_cost_usd: this.#costUsd,
    };
  }

  get #costUsd(): number | null {
    return this.#tokens.costUsd === 0 ? null : this.#tokens.costUsd;
  }

  #addTokens(result: ModelResult): void {
    const usage = usageOf(result);
    if (usage === null) return;
    this.#tokens.prompt += usage.promptTokens;
    this.#tokens.completion += usage.completionTokens;
    this.#tokens.cached += usage.cachedTokens ?? 0;
    this.#tokens.costUsd += costUsd(this.#parts.modelInfo, usage);
  }

  #holdsSecret(messages: readonly ChatMessage[], { text, reasoning }: ModelResult): boolean {
    return this.#redactor.holds([messages, text, reasoning]);
  }
}
