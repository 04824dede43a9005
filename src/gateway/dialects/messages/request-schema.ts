/** Shapes of a Messages request; fields that are not named here are for `read-request.ts` to decide about. */
import { z } from 'zod';
import { RequestProblem } from '../dialect.ts';

const record = z.record(z.string(), z.unknown());

const jsonSchemaFormat = z.object({
  type: z.literal('json_schema', { error: 'must be "json_schema"' }),
  schema: record,
  name: z.string().nullish(),
  description: z.string().nullish(),
  strict: z.boolean().nullish(),
});

export const requestSchema = z.object({
  model: z.string().nullish(),
  messages: z.array(
    z.object({
      role: z.enum(['user', 'assistant', 'system']),
      content: z.unknown().optional(),
      output_config: z.unknown().optional(),
    }),
  ),
  system: z.unknown().optional(),
  max_tokens: z.int().min(1, { error: 'must be at least 1' }).nullish(),
  stop_sequences: z.array(z.string()).nullish(),
  stream: z.boolean().nullish(),
  temperature: z.number().nullish(),
  top_p: z.number().nullish(),
  top_k: z.int().nullish(),
  tools: z.array(record).nullish(),
  tool_choice: z
    .discriminatedUnion('type', [
      z.object({ type: z.literal('none') }),
      z.object({ type: z.literal('auto'), disable_parallel_tool_use: z.boolean().nullish() }),
      z.object({ type: z.literal('any'), disable_parallel_tool_use: z.boolean().nullish() }),
      z.object({
        type: z.literal('tool'),
        name: z.string(),
        disable_parallel_tool_use: z.boolean().nullish(),
      }),
    ])
    .nullish(),
  thinking: z.object({ type: z.string(), display: z.string().nullish() }).nullish(),
  output_config: z
    .object({ effort: z.string().nullish(), format: jsonSchemaFormat.nullish() })
    .nullish(),
  output_format: jsonSchemaFormat.nullish(),
});
export type GivenRequest = z.output<typeof requestSchema>;

/** Of the user or the assistant. */
export interface GivenMessage {
  readonly role: 'user' | 'assistant';
  readonly content?: unknown;
}

export const toolSchema = z.object({
  name: z.string().min(1),
  description: z.string().nullish(),
  input_schema: record.nullish(),
  strict: z.boolean().nullish(),
});

const text = z.string();

/** What of a block is read, by its type. */
export const blockSchemas = {
  text: z.object({ text }),
  thinking: z.object({ thinking: text, signature: text.nullish() }),
  redacted_thinking: z.object({ data: text }),
  compaction: z.object({ content: text.nullish() }),
  tool_use: z.object({ id: text, name: text, input: z.unknown().optional() }),
  tool_result: z.object({
    tool_use_id: text,
    content: z.unknown().optional(),
    is_error: z.boolean().nullish(),
  }),
  image: z.object({ source: record }),
  document: z.object({ source: record, title: text.nullish(), context: text.nullish() }),
  search_result: z.object({ source: text, title: text, content: z.unknown().optional() }),
  tool_reference: z.object({ tool_name: text }),
  tool_change: z.object({
    tool: z.object({
      type: text,
      name: text.nullish(),
      server_name: text.nullish(),
      definition: record.nullish(),
    }),
  }),
  base64_image: z.object({ media_type: text, data: text }),
  address: z.object({ url: text }),
  text_source: z.object({ data: text }),
};

/** Throws `RequestProblem` with the path of the first thing that is wrong. */
export function parsed<Schema extends z.ZodType>(
  schema: Schema,
  value: unknown,
  at: string,
): z.output<Schema> {
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  const [issue] = result.error.issues;
  const below = (issue?.path ?? []).map(String);
  const field = [at, ...below].filter((part) => part !== '').join('.');
  throw new RequestProblem(issue?.message ?? 'is not what it may be', {
    field: field === '' ? null : field,
  });
}
