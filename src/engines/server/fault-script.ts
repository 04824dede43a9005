/**
 * Faults on purpose: a list of rules, the first that matches a request strikes it. Counting rules (`nth`, `every`) count the requests that pass
 * their other conditions; `share` draws from the seed, the prompt and how often it came, so that concurrency does not change who is struck.
 */
import { readFile } from 'node:fs/promises';
import { parse } from 'yaml';
import { z } from 'zod';
import { messageOf, RolloutError } from '../../core/errors.ts';
import { PrefixHash, SeenCounter, seededRandom } from './seeded.ts';

const matchSchema = z.strictObject({
  /** The n-th request, from 1. */
  nth: z.int().positive().optional(),
  every: z.int().positive().optional(),
  share: z.number().min(0).max(1).optional(),
  route: z.string().optional(),
  promptContains: z.string().optional(),
});

const afterTokens = z.int().min(0).default(0);

const faultSchema = z.discriminatedUnion('fault', [
  z.strictObject({ match: matchSchema, fault: z.literal('status-500') }),
  z.strictObject({
    match: matchSchema,
    fault: z.literal('overload'),
    status: z.union([z.literal(429), z.literal(503)]).default(503),
    retryAfterSeconds: z.number().min(0).default(1),
  }),
  z.strictObject({ match: matchSchema, fault: z.literal('context-overflow') }),
  z.strictObject({ match: matchSchema, fault: z.literal('reset'), afterTokens }),
  z.strictObject({ match: matchSchema, fault: z.literal('truncate-body'), afterTokens }),
  z.strictObject({ match: matchSchema, fault: z.literal('malformed-chunk'), afterTokens }),
  z.strictObject({
    match: matchSchema,
    fault: z.literal('stall'),
    afterTokens,
    ms: z.union([z.number().min(0), z.literal('forever')]).default('forever'),
  }),
  z.strictObject({ match: matchSchema, fault: z.literal('slow'), ms: z.number().min(0) }),
]);

export type FaultRule = z.output<typeof faultSchema>;
/** As written in a file: what has a default may be absent. */
export type FaultRuleInput = z.input<typeof faultSchema>;
export type FaultKind = FaultRule['fault'];

export interface FaultSubject {
  readonly route: string;
  readonly promptIds: readonly number[];
  /** Decoded only when a rule asks. */
  readonly promptText: () => string;
}

/** Answers which fault strikes a request, or null. Each call counts as one request. */
export type FaultChooser = (subject: FaultSubject) => FaultRule | null;

/** Reads a JSON or YAML file, or the document itself when the text begins with a bracket. CONFIG_INVALID names what is wrong. */
export async function readFaults(source: string): Promise<readonly FaultRule[]> {
  const isInline = /^\s*[[{-]/.test(source);
  try {
    return compileFaults(parse(isInline ? source : await readFile(source, 'utf8')));
  } catch (error) {
    if (error instanceof RolloutError) throw error;
    throw refusal(messageOf(error), error);
  }
}

export function compileFaults(document: unknown): readonly FaultRule[] {
  const list = Array.isArray(document) ? z.array(faultSchema) : faultSchema.transform((r) => [r]);
  const result = list.safeParse(document);
  if (result.success) return result.data;
  throw refusal(
    result.error.issues
      .map(({ path, message }) => `${path.length === 0 ? 'rule' : path.join('.')}: ${message}`)
      .join('; '),
    result.error,
  );
}

function refusal(message: string, cause: unknown): RolloutError {
  return new RolloutError('CONFIG_INVALID', message, {
    phase: 'config',
    field: '--faults',
    remedy:
      'Give a list of rules with match and fault, as JSON or YAML; docs/engine.md shows them.',
    cause,
  });
}

export function faultChooser(rules: readonly FaultRule[], seed: number): FaultChooser {
  const counts = rules.map(() => 0);
  const seen = new SeenCounter();
  return (subject) => {
    if (rules.length === 0) return null;
    const key = PrefixHash.of(subject.promptIds).low;
    const attempt = seen.next(key);
    let chosen: FaultRule | null = null;
    for (const [index, rule] of rules.entries()) {
      const { nth, every, share, route, promptContains } = rule.match;
      if (route !== undefined && route !== subject.route) continue;
      if (promptContains !== undefined && !subject.promptText().includes(promptContains)) continue;
      const count = (counts[index] ?? 0) + 1;
      counts[index] = count;
      if (nth !== undefined && count !== nth) continue;
      if (every !== undefined && count % every !== 0) continue;
      if (share !== undefined && seededRandom(seed, 11, index, key, attempt)() >= share) continue;
      chosen ??= rule;
    }
    return chosen;
  };
}
