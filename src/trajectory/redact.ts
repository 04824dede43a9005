/**
 * Takes known secrets out of a trajectory. Every string is searched; a replaced secret leaves `[REDACTED]`. Token ids cannot be searched, so they
 * follow the text that they stand for: sampled ids go when the step's own text (or the text that was sampled) held a secret, prompt ids when
 * anything before the step did. Such a step is marked `extra.slipway.trainable: false`. All else stays as it is, byte for byte.
 */
import type { AtifAgent, AtifStep } from '../wire/atif/atif.ts';
import { replaceWrapped, spellingsOf, wrappableOf } from './secret-spellings.ts';

/** Stands where a secret was. */
export const redacted = '[REDACTED]';

/** Fields whose objects are the author's own: their keys may hold a secret too, and a null in them means something. */
const freeFields = new Set(['extra', 'arguments', 'tool_definitions']);
/** Words of the format itself and times: replacing them would break a document and hide nothing. */
const formatWord = /^(?:system|user|agent|text|image|image\/[a-z]+|ATIF-v\d+\.\d+)$/;
const time = /^\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)?$/;
const wordFields = new Set(['source', 'type', 'media_type', 'schema_version']);

const sensitiveSuffix =
  /(?:^|_)(?:api_key|apikey|authorization|credentials?|password|secret|token)$/;

/** Replaces values under keys that name a secret, whatever they are. */
export function redactByKey(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(redactByKey);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, part]: [string, unknown]) => [
      key,
      sensitiveSuffix.test(key.toLowerCase().replaceAll('-', '_')) ? redacted : redactByKey(part),
    ]),
  );
}

/** One document being cleaned, step by step in order. */
export class TrajectoryRedactor {
  readonly #secrets: readonly string[];
  readonly #spellings: readonly string[];
  readonly #wrappable: readonly string[];
  readonly #keepsNulls: boolean;
  /** Whether anything so far held a secret: the prompt of every later step holds it too. */
  #isTold: boolean;

  /** `isTold`: a secret stands in what comes before the first step. */
  constructor(
    secrets: readonly string[],
    options: { readonly keepsNulls?: boolean; readonly isTold?: boolean } = {},
  ) {
    this.#secrets = secrets;
    this.#spellings = spellingsOf(secrets);
    this.#wrappable = wrappableOf(secrets);
    this.#keepsNulls = options.keepsNulls ?? false;
    this.#isTold = options.isTold ?? false;
  }

  /** For a document inside this one, which has a conversation of its own. */
  another(): TrajectoryRedactor {
    return new TrajectoryRedactor(this.#secrets, { keepsNulls: this.#keepsNulls });
  }

  /** The agent's description; tool definitions are part of every prompt. */
  agent(agent: AtifAgent): AtifAgent {
    const extra = agent.extra == null ? agent.extra : redactByKey(agent.extra);
    this.#isTold ||= this.holds(agent.tool_definitions);
    return this.clean({ ...agent, extra }) as AtifAgent;
  }

  step<T extends Omit<AtifStep, 'step_id'>>(step: T, sampledText = ''): T {
    const { observation, metrics, ...sampled } = step;
    const ownTold = this.holds(sampled) || this.holds(sampledText);
    const seenTold = this.holds(observation);
    const manyCalls = (step.llm_call_count ?? 1) > 1;
    const promptTold = this.#isTold || (manyCalls && (ownTold || seenTold));
    this.#isTold ||= ownTold || seenTold;
    const cleaned = this.clean(step) as T;
    if (!hasIds(metrics)) return cleaned;
    const dropsPrompt = promptTold && metrics.prompt_token_ids != null;
    const dropsSampled =
      (ownTold || (manyCalls && promptTold)) &&
      (metrics.completion_token_ids != null || metrics.logprobs != null);
    if (!dropsPrompt && !dropsSampled) return cleaned;
    return withoutIds(cleaned, { dropsPrompt, dropsSampled });
  }

  /** Any part of a document that is no step: every string cleaned, fields of the format that are null left out. */
  clean(value: unknown): unknown {
    return this.#clean(value, { isFree: false, field: '' });
  }

  /** A plain text, with every spelling replaced. */
  text(text: string): string {
    return this.#spellings.reduce(
      (result, spelling) => result.replaceAll(spelling, redacted),
      replaceWrapped(text, this.#wrappable, redacted),
    );
  }

  /** Whether a text, or any string inside a value, spells a secret. */
  holds(value: unknown): boolean {
    if (typeof value === 'string')
      return (
        this.#spellings.some((spelling) => value.includes(spelling)) ||
        replaceWrapped(value, this.#wrappable, redacted) !== value
      );
    // Ids by the ten thousand are looked at, not searched.
    if (Array.isArray(value))
      return value.some((part) => typeof part !== 'number' && this.holds(part));
    if (typeof value !== 'object' || value === null) return false;
    return Object.entries(value).some(
      ([key, part]: [string, unknown]) => this.holds(part) || this.holds(key),
    );
  }

  #clean(value: unknown, at: { readonly isFree: boolean; readonly field: string }): unknown {
    if (typeof value === 'string') return this.#text(value, at);
    if (Array.isArray(value))
      return value.every((item) => typeof item === 'number')
        ? value
        : value.map((item) => this.#clean(item, at));
    if (typeof value !== 'object' || value === null) return value;
    const entries = Object.entries(value).flatMap(([key, part]: [string, unknown]) => {
      if (part === undefined || (part === null && !at.isFree && !this.#keepsNulls)) return [];
      const isFree = at.isFree || freeFields.has(key);
      const name = at.isFree ? this.#text(key, { isFree, field: '' }) : key;
      return [[name, this.#clean(part, { isFree, field: key })] as const];
    });
    return Object.fromEntries(entries);
  }

  #text(text: string, at: { readonly isFree: boolean; readonly field: string }): string {
    if (!at.isFree && wordFields.has(at.field) && formatWord.test(text)) return text;
    if (!at.isFree && at.field === 'timestamp' && time.test(text)) return text;
    // A lone surrogate has no UTF-8: no reader of the document could take it.
    return this.text(text).toWellFormed();
  }
}

function hasIds(metrics: AtifStep['metrics']): metrics is NonNullable<AtifStep['metrics']> {
  return (
    metrics != null &&
    (metrics.prompt_token_ids != null ||
      metrics.completion_token_ids != null ||
      metrics.logprobs != null)
  );
}

function withoutIds<T extends Omit<AtifStep, 'step_id'>>(
  step: T,
  drop: { readonly dropsPrompt: boolean; readonly dropsSampled: boolean },
): T {
  const { prompt_token_ids, completion_token_ids, logprobs, ...metrics } = step.metrics ?? {};
  // A step of a foreign author may hold anything in the place of an object.
  const extra = objectOf(step.extra);
  return {
    ...step,
    metrics: {
      ...metrics,
      ...(drop.dropsPrompt || prompt_token_ids == null ? {} : { prompt_token_ids }),
      ...(drop.dropsSampled || completion_token_ids == null ? {} : { completion_token_ids }),
      ...(drop.dropsSampled || logprobs == null ? {} : { logprobs }),
    },
    extra: {
      ...extra,
      slipway: {
        ...objectOf(extra['slipway']),
        trainable: false,
        reason: 'secret-redacted',
      },
    },
  };
}

function objectOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
    ? (value as Readonly<Record<string, unknown>>)
    : {};
}
