export interface BodyOptions {
  readonly durationMs: number;
  /** Where callbacks go; null = to nobody, which matters only to rollouts that end. */
  readonly callbackUrl: string | null;
}

/** About 2 KiB, as a short task is. */
const prompt = 'Make the tests of the repository pass without changing them. '.repeat(24);

export function rolloutBody(id: string, { durationMs, callbackUrl }: BodyOptions): string {
  const receiver = callbackUrl ?? 'http://127.0.0.1:9';
  return JSON.stringify({
    rollout_id: id,
    initial_messages: [
      { role: 'system', content: 'You work in a terminal.' },
      { role: 'user', content: prompt },
    ],
    chat_completions_url: 'http://127.0.0.1:9/v1',
    completion_callback_url: `${receiver}/${id}/completion`,
    grader_callback_url: callbackUrl === null ? null : `${receiver}/${id}/grader`,
    controller_api_key: 'bench-controller-key',
    metadata: { null: { duration_ms: durationMs } },
  });
}
