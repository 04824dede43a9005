/** Samples as they come out of a sandbox: foreign documents, of which only what fits is used. */
import { constants } from 'node:fs';
import { open } from 'node:fs/promises';
import { z } from 'zod';
import { jsonShape } from '../../core/json-shape.ts';
import type { ErrorCategory, Sample } from '../../wire/rollout/callback-payloads.ts';

/** A longer document is none. */
export const maxDocumentBytes = 64 * 1024 * 1024;
/** More than a runner's Python can write. A deeper document ends whoever walks through it, one of more values takes many times the memory of its text. */
const maxDepth = 1_000;
const maxValues = 4_000_000;

const record = z.record(z.string(), z.unknown());
const messages = z.array(record);
const category = z
  .enum(['timeout', 'validation_error', 'agent_error'])
  .catch('agent_error')
  .default('agent_error');

const sampleSchema = z.object({
  messages: messages.default([]),
  trajectory_messages: messages.nullish(),
  label: z.string().nullish().default(null),
  reward: z.number().nullish().default(null),
  remove_sample: z.boolean().default(false),
  metrics: record.default({}),
  extra_fields: record.default({}),
});

const failureSchema = z.object({
  status: z.literal('failure'),
  err_message: z.string().nullish(),
  err_category: category,
});

const resultSchema = z.union([
  z.object({ status: z.literal('success'), sample: sampleSchema.nullable() }),
  failureSchema,
]);

const gradedSchema = z.union([
  sampleSchema
    .omit({ messages: true, trajectory_messages: true })
    .extend({ status: z.literal('success') }),
  failureSchema,
]);

export interface UserFailure {
  readonly message: string;
  readonly category: ErrorCategory;
}

export type WorkflowEnd =
  | { readonly sample: Sample | null; readonly failure?: never }
  | { readonly failure: UserFailure; readonly sample?: never };

/** What a grader leaves of a sample. */
export type GradedPart = Pick<Sample, 'label' | 'reward' | 'isRemoved' | 'metrics' | 'extraFields'>;

export type GraderEnd =
  | { readonly graded: GradedPart; readonly failure?: never }
  | { readonly failure: UserFailure; readonly graded?: never };

/** null = there is no such file, or it says nothing of the kind. */
export async function readWorkflowEnd(file: string): Promise<WorkflowEnd | null> {
  const parsed = resultSchema.safeParse(await readDocument(file));
  if (!parsed.success) return null;
  const { data } = parsed;
  if (data.status === 'failure') return { failure: failureOf(data, 'the workflow failed') };
  if (data.sample === null) return { sample: null };
  const { messages: said, trajectory_messages: trajectory } = data.sample;
  return {
    sample: {
      ...gradedPart(data.sample),
      messages: said,
      trajectoryMessages: trajectory === undefined ? said : trajectory,
    },
  };
}

/** null = there is no such file, or it says nothing of the kind. */
export async function readGraderEnd(file: string): Promise<GraderEnd | null> {
  const parsed = gradedSchema.safeParse(await readDocument(file));
  if (!parsed.success) return null;
  const { data } = parsed;
  return data.status === 'failure'
    ? { failure: failureOf(data, 'the grader failed') }
    : { graded: gradedPart(data) };
}

type WirePart = Omit<z.output<typeof sampleSchema>, 'messages' | 'trajectory_messages'>;

function gradedPart(sample: WirePart): GradedPart {
  return {
    label: sample.label ?? null,
    reward: sample.reward ?? null,
    isRemoved: sample.remove_sample,
    metrics: sample.metrics,
    extraFields: sample.extra_fields,
  };
}

function failureOf(failure: z.output<typeof failureSchema>, otherwise: string): UserFailure {
  const message = failure.err_message ?? '';
  return { message: message === '' ? otherwise : message, category: failure.err_category };
}

/** undefined = it cannot be read. Links are not followed. */
async function readDocument(file: string): Promise<unknown> {
  try {
    await using handle = await open(
      file,
      constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK,
    );
    const stats = await handle.stat();
    if (!stats.isFile() || stats.size > maxDocumentBytes) return undefined;
    const content = await handle.readFile();
    const { depth, values } = jsonShape(content);
    if (depth > maxDepth || values > maxValues) return undefined;
    return JSON.parse(content.toString('utf8')) as unknown;
  } catch {
    return undefined;
  }
}
