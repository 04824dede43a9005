/** An answer that is an error, as the dialect of its route spells it. */
export type ErrorShape = 'openai' | 'sglang-chat' | 'sglang-native';

export class Refusal extends Error {
  override readonly name = 'Refusal';
  readonly status: number;
  readonly type: string;
  readonly retryAfterSeconds: number | null;

  constructor(
    status: number,
    message: string,
    options: { readonly type?: string; readonly retryAfterSeconds?: number } = {},
  ) {
    super(message);
    this.status = status;
    this.type = options.type ?? typeOf(status);
    this.retryAfterSeconds = options.retryAfterSeconds ?? null;
  }

  body(shape: ErrorShape): object {
    const { message, type, status } = this;
    switch (shape) {
      case 'openai':
        return { error: { message, type, param: null, code: status } };
      case 'sglang-chat':
        return { object: 'error', message, type, param: null, code: status };
      case 'sglang-native':
        return { error: { message } };
    }
  }
}

function typeOf(status: number): string {
  if (status === 401) return 'AuthenticationError';
  if (status === 404) return 'NotFoundError';
  if (status === 429) return 'RateLimitError';
  if (status === 503) return 'ServiceUnavailableError';
  return status >= 500 ? 'InternalServerError' : 'BadRequestError';
}

/** The prompt, or prompt and output, do not fit the context: in the words that clients look for. */
export function contextOverflow(sizes: {
  readonly context: number;
  readonly prompt: number;
  readonly output: number;
}): Refusal {
  const { context, prompt, output } = sizes;
  return new Refusal(
    400,
    prompt >= context
      ? `The input (${prompt} tokens) is longer than the model's context length (${context} tokens); ` +
          `this model's maximum context length is ${context} tokens.`
      : `This model's maximum context length is ${context} tokens. However, ${prompt + output} tokens were asked for ` +
          `(${prompt} of input, ${output} of output).`,
  );
}
