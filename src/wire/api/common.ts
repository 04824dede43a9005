import { z } from 'zod';
import { rolloutStates } from '../rollout/rollout-state.ts';

/** ISO 8601 in UTC, as `Date.toISOString` writes it. */
export const instant = z.iso.datetime();

export const jsonObject = z.record(z.string(), z.unknown());

export const rolloutState = z.enum(rolloutStates);

/** Answer to a refused request. `code` is one of `docs/errors.md`; absent where the framework or the protocol refuses. */
export const errorDocument = z.object({
  detail: z.string(),
  code: z.string().optional(),
});
export type ErrorDocument = z.output<typeof errorDocument>;

/** One problem of a request, in the shape of FastAPI. */
export const validationProblem = z.object({
  type: z.string(),
  loc: z.array(z.union([z.string(), z.number()])),
  msg: z.string(),
  input: z.unknown(),
  ctx: jsonObject.optional(),
});
export type ValidationProblem = z.output<typeof validationProblem>;

export const validationDocument = z.object({ detail: z.array(validationProblem) });
