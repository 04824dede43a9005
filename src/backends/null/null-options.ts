import { z } from 'zod';
import { errorRegistry, type ErrorCode } from '../../core/error-registry.ts';

const codes = Object.keys(errorRegistry) as [ErrorCode, ...ErrorCode[]];
const milliseconds = z.number().min(0).max(86_400_000).default(0);

/** `metadata.null` of a request: what the rollout is to look like. */
export const nullOptionsSchema = z
  .strictObject({
    /** What the grade is. */
    reward: z.number().nullable().default(1),
    /** How long the agent takes. */
    duration_ms: milliseconds,
    /** How long grading takes. */
    grade_ms: milliseconds,
    /** It fails with this code: in grading when that is a code of verifiers, else in the agent's part. */
    fail: z.enum(codes).nullable().default(null),
    /** Chat completions that the agent asks for, one after the other. */
    agent_calls: z.int().min(0).default(0),
  })
  .prefault({});

export type NullOptions = z.output<typeof nullOptionsSchema>;
