/**
 * What the calls of one rollout may use up. A call counts as a request when it is let through, as a turn when its upstream begins to answer, and with the tokens
 * of its answer when it has ended. While running calls may still turn out to be the last turns, a further one is asked to wait instead of being told that all is over.
 */
import { errorRegistry } from '../core/error-registry.ts';
import type { RouteActivity } from '../wire/rollout/route-activity.ts';
import type { CallBudgets } from '../wire/rollout/route-rules.ts';
import type { GatewayError } from './gateway-error.ts';

type Spent = NonNullable<RouteActivity['spent']>;

/** `sampling` asks the model, `counting` its tokenizer, `other` neither. */
export type CallKind = 'sampling' | 'counting' | 'other';

/** What calls that have ended used up. */
export interface CallUse {
  readonly requests: number;
  readonly turns: number;
  readonly tokens: number;
  /** Prompt and answer of the longest; absent = nobody counted. */
  readonly longestCall?: number;
}

/** One call's part in the budgets. */
export interface CallShare {
  /** The upstream began to answer. Idempotent. */
  answered(): void;
  /** Nothing more comes; with how many tokens were sampled, and how many the prompt had as far as that is known. Idempotent. */
  ended(sampledTokens: number, promptTokens: number): void;
}

const nothing: CallShare = { answered: () => undefined, ended: () => undefined };

export class CallBudget {
  readonly limits: CallBudgets;
  readonly #maxInFlight: number;
  #requests: number;
  #turns: number;
  #tokens: number;
  #longestCall: number;
  /** Running calls of which is not known yet whether they are turns. */
  #undecided = 0;
  #spent: Spent | null = null;

  constructor(
    limits: CallBudgets,
    options: { readonly maxInFlight: number; readonly usedBefore: CallUse | null },
  ) {
    const { maxInFlight, usedBefore } = options;
    this.limits = limits;
    this.#maxInFlight = Math.min(maxInFlight, limits.max_in_flight ?? maxInFlight);
    this.#requests = usedBefore?.requests ?? 0;
    this.#turns = usedBefore?.turns ?? 0;
    this.#tokens = usedBefore?.tokens ?? 0;
    this.#longestCall = usedBefore?.longestCall ?? 0;
  }

  get used(): CallUse {
    return {
      ...{ requests: this.#requests, turns: this.#turns, tokens: this.#tokens },
      longestCall: this.#longestCall,
    };
  }

  /** The budget that refused a call, and how often; null = none has. */
  get spent(): Spent | null {
    return this.#spent;
  }

  get countsTokens(): boolean {
    const { max_sampled_tokens: ofAll, max_call_tokens: ofOne } = this.limits;
    return ofAll !== undefined || ofOne !== undefined;
  }

  /** null = the call may go on. `running`: calls that have not ended. A budget that is used up counts the refusal. */
  refusal(
    kind: CallKind,
    { running, now }: { readonly running: number; readonly now: Date },
  ): GatewayError | null {
    const spent = kind === 'other' ? null : this.#usedUp(kind);
    if (spent !== null) {
      const { limit, max, used } = spent;
      const isSame = this.#spent?.limit === limit;
      this.#spent = {
        ...{ limit, max, used },
        refused: (isSame ? (this.#spent?.refused ?? 0) : 0) + 1,
        at: isSame ? (this.#spent?.at ?? now) : now,
      };
      return {
        status: errorRegistry.BUDGET_EXHAUSTED.httpStatus,
        code: 'BUDGET_EXHAUSTED',
        message: `${limit} = ${max}: the rollout has used up its ${words[limit]}; end the work here`,
      };
    }
    const { max_turns: maxTurns } = this.limits;
    if (running >= this.#maxInFlight) return busy(`${running} calls of this rollout are under way`);
    if (kind === 'sampling' && maxTurns !== undefined && this.#turns + this.#undecided >= maxTurns)
      return busy(`the calls under way may be the last turns of this rollout`);
    return null;
  }

  begin(kind: CallKind): CallShare {
    if (kind === 'other') return nothing;
    this.#requests += 1;
    if (kind === 'counting') return nothing;
    this.#undecided += 1;
    let [isDecided, hasEnded] = [false, false];
    const decide = (turns: 0 | 1): void => {
      if (isDecided) return;
      isDecided = true;
      this.#undecided -= 1;
      this.#turns += turns;
    };
    return {
      answered: () => decide(1),
      ended: (sampledTokens, promptTokens) => {
        if (hasEnded) return;
        hasEnded = true;
        decide(0);
        this.#tokens += sampledTokens;
        this.#longestCall = Math.max(this.#longestCall, promptTokens + sampledTokens);
      },
    };
  }

  #usedUp(kind: CallKind): Pick<Spent, 'limit' | 'max' | 'used'> | null {
    const rows = [
      ['max_requests', this.#requests],
      ['max_turns', kind === 'sampling' ? this.#turns : 0],
      ['max_sampled_tokens', kind === 'sampling' ? this.#tokens : 0],
      ['max_call_tokens', kind === 'sampling' ? this.#longestCall : 0],
    ] as const;
    for (const [limit, used] of rows) {
      const max = this.limits[limit];
      if (max !== undefined && used >= max) return { limit, max, used };
    }
    return null;
  }
}

const words: Readonly<Record<Spent['limit'], string>> = {
  max_requests: 'requests',
  max_turns: 'turns',
  max_sampled_tokens: 'sampled tokens',
  max_call_tokens: 'context',
};

function busy(message: string): GatewayError {
  return { status: 429, code: 'too_many_calls', message, headers: { 'retry-after': '1' } };
}
