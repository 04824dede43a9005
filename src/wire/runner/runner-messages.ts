/**
 * What the server and a runner (`python/slipway_runner`) say to each other: JSON documents, one per line, on the runner's standard input and output.
 *
 *     server → start ............................ once, first
 *     runner → ready | broken
 *     server → order, then perhaps cancel ....... one order at a time
 *     runner → request, withdraw ................ any number at once, while it works
 *     server → answer | refusal ................. one per request that was not withdrawn
 *     runner → ended ............................ one per order
 *
 * Orders, reports, methods and their parameters are those of the role and have schemas of their own. What the user's code prints goes to the standard
 * error; after an order the runner writes a mark there, so that the server knows whose text ends where. The end of the standard input ends the runner.
 */
import { z } from 'zod';

export const runnerProtocolVersion = 1;

/** A longer line ends the runner. */
export const maxRunnerLineBytes = 64 * 1024 * 1024;

export const runnerRoles = ['workflow', 'harbor-agent'] as const;
export type RunnerRole = (typeof runnerRoles)[number];

const id = z.int().min(0);
const record = z.record(z.string(), z.unknown());

export const fromRunnerSchema = z.discriminatedUnion('kind', [
  /** It can take orders. `python`: the version of its interpreter; `details`: what its role says of itself. */
  z.object({ kind: z.literal('ready'), python: z.string(), details: record.default({}) }),
  /** It cannot: the user's code cannot be loaded. `missing`: a package that the interpreter does not have. */
  z.object({
    kind: z.literal('broken'),
    message: z.string(),
    missing: z.string().nullish().default(null),
  }),
  z.object({ kind: z.literal('ended'), id, report: z.unknown() }),
  z.object({ kind: z.literal('request'), id, method: z.string(), params: z.unknown() }),
  /** Nobody waits for the answer any more. */
  z.object({ kind: z.literal('withdraw'), id }),
]);
export type FromRunner = z.infer<typeof fromRunnerSchema>;

export type ToRunner =
  | {
      readonly kind: 'start';
      readonly version: typeof runnerProtocolVersion;
      /** Written to the standard error after each order, between two NUL bytes, with a colon and the number of the order. */
      readonly mark: string;
      /** Of the data of its process; null = none. */
      readonly memoryMb: number | null;
      readonly settings: unknown;
    }
  | { readonly kind: 'order'; readonly id: number; readonly order: unknown }
  | { readonly kind: 'cancel'; readonly id: number; readonly reason: string }
  | { readonly kind: 'answer'; readonly id: number; readonly value: unknown }
  | { readonly kind: 'refusal'; readonly id: number; readonly error: RunnerRefusal };

/** Why a request was not answered; raised in the runner where the request was made. */
export interface RunnerRefusal {
  /** An error code of ours, or the name of what was thrown. */
  readonly code: string;
  readonly message: string;
}

/** What was thrown. `kind`: by the user's code, or of an answer that is not what it may be. */
export const runnerFailureSchema = z.object({
  kind: z.enum(['thrown', 'answer']),
  category: z.enum(['timeout', 'validation_error', 'agent_error']),
  /** Name of its class. */
  type: z.string(),
  message: z.string(),
});
export type RunnerFailure = z.infer<typeof runnerFailureSchema>;

/** How an order ended: every role's report. */
export function runnerReportSchema<Value>(value: z.ZodType<Value>) {
  return z.object({
    /** By the runner's own clock, from taking the order to having the answer. */
    elapsedMs: z.number(),
    /** It had been told to stop by then: whatever the answer is, it comes too late. */
    wasCancelled: z.boolean(),
    /** Nothing of this order is still at work in the process: it can take another rollout's. */
    isIdle: z.boolean(),
    failure: runnerFailureSchema.nullable(),
    /** null where there is a failure, and where there is no answer. */
    value: value.nullable(),
  });
}
