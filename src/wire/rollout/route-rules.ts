/**
 * What a rollout's model calls keep to, whatever the agent's program asks for: `metadata.slipway_gateway` of a request, and the settings of a server. Pins are
 * spelled as chat completions spell them; null takes the field away, so that the engine's own default holds.
 */
import { z } from 'zod';
import { RolloutError } from '../../core/errors.ts';

const texts = z.array(z.string());

export const samplingPinsSchema = z
  .strictObject({
    temperature: z.number().min(0).nullable(),
    top_p: z.number().min(0).max(1).nullable(),
    top_k: z.int().min(-1).nullable(),
    min_p: z.number().min(0).max(1).nullable(),
    max_tokens: z.int().min(1).nullable(),
    min_tokens: z.int().min(0).nullable(),
    stop: z.union([z.string(), texts]).nullable(),
    stop_token_ids: z.array(z.int().min(0)).nullable(),
    seed: z.int().nullable(),
    frequency_penalty: z.number().nullable(),
    presence_penalty: z.number().nullable(),
    repetition_penalty: z.number().min(0).nullable(),
    logit_bias: z.record(z.string(), z.number()).nullable(),
    ignore_eos: z.boolean().nullable(),
    reasoning_effort: z.string().min(1).nullable(),
    chat_template_kwargs: z.record(z.string(), z.unknown()).nullable(),
  })
  .partial();

export const callBudgetsSchema = z
  .strictObject({
    /** Calls that the model began to answer. */
    max_turns: z.int().min(1),
    /** Calls of any outcome, those that count tokens included. */
    max_requests: z.int().min(1),
    /** Of all answers together; the call that uses the last one up is not cut. */
    max_sampled_tokens: z.int().min(1),
    /** Of the prompt and the answer of one call together; the first call that gets there is not cut, and is the last. */
    max_call_tokens: z.int().min(1),
    /** Calls at the same time. */
    max_in_flight: z.int().min(1),
  })
  .partial();

const routeRulesSchema = callBudgetsSchema.extend({ sampling: samplingPinsSchema.optional() });

type Present<Shape> = {
  readonly [Name in keyof Shape]?: Exclude<Shape[Name], undefined>;
};

export type SamplingPins = Present<z.output<typeof samplingPinsSchema>>;
export type CallBudgets = Present<z.output<typeof callBudgetsSchema>>;

export interface RouteRules {
  readonly pins: SamplingPins;
  readonly budgets: CallBudgets;
}

export const noRules: RouteRules = { pins: {}, budgets: {} };

/** The key of the metadata. */
export const routeRulesKey = 'slipway_gateway';

/** CONFIG_INVALID for rules that cannot be read: a row that misspells them must not run without them. */
export function routeRulesOf(metadata: Readonly<Record<string, unknown>> | null): RouteRules {
  const given = metadata?.[routeRulesKey];
  if (given === undefined || given === null) return noRules;
  const read = routeRulesSchema.safeParse(given);
  if (!read.success)
    throw new RolloutError('CONFIG_INVALID', read.error.issues.map(problemOf).join('; '), {
      ...{ phase: 'model-call', field: `metadata.${routeRulesKey}` },
      remedy: 'Name only pins and budgets that docs/gateway.md lists, with values of their kind.',
    });
  const { sampling = {}, ...budgets } = read.data;
  return { pins: present(sampling), budgets: present(budgets) };
}

/** A rollout's pins win over the server's, one by one; of budgets the smaller one holds. */
export function joinedRules(server: RouteRules, rollout: RouteRules): RouteRules {
  const budgets: Record<string, number> = { ...server.budgets };
  for (const [name, limit] of Object.entries(rollout.budgets))
    budgets[name] = Math.min(limit, budgets[name] ?? limit);
  return { pins: { ...server.pins, ...rollout.pins }, budgets };
}

function problemOf({ path, message }: z.core.$ZodIssue): string {
  return `${['metadata', routeRulesKey, ...path].map(String).join('.')}: ${message}`;
}

function present<Shape extends object>(fields: Shape): Present<Shape> {
  const entries = Object.entries(fields).filter(([, value]) => value !== undefined);
  return Object.fromEntries(entries) as Present<Shape>;
}
