/** The fields of a request that have a meaning here, and the reading of shapes with the place of the first fault in the client's own spelling. */
import { z } from 'zod';
import { RequestProblem } from '../dialect.ts';

const text = z.string().nullish();
const flag = z.boolean().nullish();
const number = z.number().nullish();
const count = z.number().int().positive().nullish();
const list = z.array(z.unknown()).nullish();
const anything = z.unknown().optional();
const object = z.record(z.string(), z.unknown());

export const requestSchema = z.object({
  model: text,
  instructions: text,
  /** Its items are read one by one. */
  input: anything,
  tools: list,
  tool_choice: anything,
  parallel_tool_calls: flag,
  reasoning: z.looseObject({ effort: text, summary: text }).nullish(),
  text: z.looseObject({ format: anything, verbosity: text }).nullish(),
  include: z.array(z.string()).nullish(),
  stream: flag,
  store: flag,
  metadata: object.nullish(),
  previous_response_id: text,
  max_output_tokens: count,
  max_tool_calls: number,
  truncation: text,
  temperature: number,
  top_p: number,
  // Not of the API, but what engines sample with.
  top_k: z.number().int().nullish(),
  min_p: number,
  seed: z.number().int().nullish(),
  stop: z.union([z.string(), z.array(z.string())]).nullish(),
  frequency_penalty: number,
  presence_penalty: number,
  // What would change the answer and cannot be had here.
  background: flag,
  conversation: anything,
  prompt: anything,
  top_logprobs: number,
  // Bookkeeping of the client.
  user: text,
  safety_identifier: text,
  prompt_cache_key: text,
  prompt_cache_retention: anything,
  prompt_cache_options: anything,
  service_tier: anything,
  stream_options: anything,
  client_metadata: anything,
});

export type RequestFields = z.infer<typeof requestSchema>;

export const formatSchema = z.discriminatedUnion('type', [
  z.object({ type: z.literal('text') }),
  z.object({ type: z.literal('json_object') }),
  z.object({
    type: z.literal('json_schema'),
    name: z.string(),
    description: text,
    schema: object,
    strict: flag,
  }),
]);

export const toolSchema = z.object({
  name: z.string().min(1),
  description: text,
  parameters: object.nullish(),
  strict: flag,
});

export const customToolSchema = z.object({
  name: z.string().min(1),
  description: text,
  format: z
    .discriminatedUnion('type', [
      z.object({ type: z.literal('text') }),
      z.object({ type: z.literal('grammar'), syntax: z.string(), definition: z.string() }),
    ])
    .nullish(),
});

export const namespaceSchema = z.object({
  name: z.string().min(1),
  description: text,
  tools: z.array(z.unknown()),
});

const callId = z.string().min(1);

export const functionCallSchema = z.object({
  call_id: callId,
  name: z.string().min(1),
  namespace: text,
  arguments: z.string(),
});

export const customCallSchema = z.object({
  call_id: callId,
  name: z.string().min(1),
  namespace: text,
  input: z.string(),
});

export const callOutputSchema = z.object({
  call_id: callId,
  output: z.union([z.string(), z.array(z.unknown())]).nullish(),
});

export const reasoningSchema = z.object({
  summary: z.array(z.object({ text: z.string() })).nullish(),
  content: z.array(z.object({ text: z.string() })).nullish(),
  encrypted_content: text,
});

export const messageSchema = z.object({
  role: z.enum(['system', 'developer', 'user', 'assistant']),
  content: z.union([z.string(), z.array(z.unknown())]),
});

export const typedSchema = z.looseObject({ type: z.string() });

/** The value in its shape; RequestProblem with the path of the first fault below `at` ('' = the request itself). */
export function shaped<Shape extends z.ZodType>(
  schema: Shape,
  value: unknown,
  at: string,
): z.infer<Shape> {
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  const [issue] = result.error.issues;
  const field = fieldAt(at, issue?.path ?? []);
  const where = field === '' ? 'the request' : field;
  throw new RequestProblem(`${where}: ${issue?.message ?? 'another shape'}`, {
    field: field === '' ? null : field,
  });
}

function fieldAt(at: string, path: readonly PropertyKey[]): string {
  return path.reduce<string>(
    (field, key) =>
      typeof key === 'number'
        ? `${field}[${key}]`
        : field === ''
          ? String(key)
          : `${field}.${String(key)}`,
    at,
  );
}
