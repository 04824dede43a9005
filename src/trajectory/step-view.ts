/** A step as a person wants to see it, whatever the document has in the places of its fields. */
export interface StepView {
  /** null = the step does not say. */
  readonly id: number | null;
  readonly source: string;
  readonly timestamp: string | null;
  readonly modelName: string | null;
  readonly message: string;
  readonly reasoning: string | null;
  readonly calls: readonly { readonly name: string; readonly arguments: string }[];
  readonly results: readonly string[];
  readonly tokens: {
    readonly prompt: number | null;
    readonly cached: number | null;
    readonly completion: number | null;
    readonly costUsd: number | null;
    /** How many ids the step carries; null = none. */
    readonly promptIds: number | null;
    readonly sampledIds: number | null;
  };
  readonly isCopied: boolean;
  /** False when the step says so. */
  readonly isTrainable: boolean;
}

export function stepView(step: unknown): StepView {
  const metrics = at(step, 'metrics');
  return {
    id: numberOr(at(step, 'step_id')),
    source: textOr(at(step, 'source')) ?? '?',
    timestamp: textOr(at(step, 'timestamp')),
    modelName: textOr(at(step, 'model_name')),
    message: contentText(at(step, 'message')),
    reasoning: textOr(at(step, 'reasoning_content')),
    calls: listOf(at(step, 'tool_calls')).map((call) => ({
      name: textOr(at(call, 'function_name')) ?? '?',
      arguments: JSON.stringify(at(call, 'arguments') ?? null),
    })),
    results: listOf(at(at(step, 'observation'), 'results')).map(resultText),
    tokens: {
      prompt: numberOr(at(metrics, 'prompt_tokens')),
      cached: numberOr(at(metrics, 'cached_tokens')),
      completion: numberOr(at(metrics, 'completion_tokens')),
      costUsd: numberOr(at(metrics, 'cost_usd')),
      promptIds: lengthOr(at(metrics, 'prompt_token_ids')),
      sampledIds: lengthOr(at(metrics, 'completion_token_ids')),
    },
    isCopied: at(step, 'is_copied_context') === true,
    isTrainable: at(at(at(step, 'extra'), 'slipway'), 'trainable') !== false,
  };
}

function resultText(result: unknown): string {
  const refs = listOf(at(result, 'subagent_trajectory_ref')).map(
    (ref) =>
      `subagent ${textOr(at(ref, 'trajectory_id')) ?? textOr(at(ref, 'trajectory_path')) ?? '?'}`,
  );
  return [contentText(at(result, 'content')), ...refs].filter((text) => text !== '').join('\n');
}

/** The text of a message or an observation; an image stands as its path. */
function contentText(content: unknown): string {
  if (typeof content === 'string') return content;
  return listOf(content)
    .map(
      (part) =>
        textOr(at(part, 'text')) ?? `[image ${textOr(at(at(part, 'source'), 'path')) ?? '?'}]`,
    )
    .join('\n');
}

function at(value: unknown, key: string): unknown {
  return typeof value === 'object' && value !== null && Object.hasOwn(value, key)
    ? (value as Readonly<Record<string, unknown>>)[key]
    : undefined;
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

function textOr(value: unknown): string | null {
  return typeof value === 'string' ? value : null;
}

function numberOr(value: unknown): number | null {
  return typeof value === 'number' ? value : null;
}

function lengthOr(value: unknown): number | null {
  return Array.isArray(value) ? value.length : null;
}
