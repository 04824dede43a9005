/** An EventSource as browsers have it: a listener for each name, and nothing is said of what has no name or another. */
import { loadCases } from '../golden.ts';
import { FuzzingBench } from './fuzzing-bench.ts';
import { eventsIn, type ProvenDialect } from './judged-answer.ts';

const names: Readonly<Record<ProvenDialect, readonly string[]>> = {
  messages: [
    ...['message_start', 'content_block_start', 'content_block_delta', 'content_block_stop'],
    ...['message_delta', 'message_stop', 'ping', 'error'],
  ],
  responses: [
    ...['created', 'in_progress', 'completed', 'incomplete', 'failed'],
    ...['output_item.added', 'output_item.done', 'content_part.added', 'content_part.done'],
    ...['output_text.delta', 'output_text.done', 'reasoning_summary_part.added'],
    ...['reasoning_summary_part.done', 'reasoning_summary_text.delta'],
    ...['reasoning_summary_text.done', 'function_call_arguments.delta'],
    ...['function_call_arguments.done', 'custom_tool_call_input.delta'],
    'custom_tool_call_input.done',
  ].map((name) => `response.${name}`),
};

export interface SeenEvents {
  readonly sent: number;
  readonly seen: number;
  /** Of the same streams without their `event:` lines. */
  readonly seenOfDataOnly: number;
}

export async function seeByName(dialect: ProvenDialect): Promise<SeenEvents> {
  await using bench = await FuzzingBench.start();
  const counts = { sent: 0, seen: 0, seenOfDataOnly: 0 };
  for (const each of loadCases(dialect)) {
    const { chunks, body } = each as unknown as { chunks?: unknown; body?: object };
    if (!Array.isArray(chunks)) continue;
    bench.answer = (chunks as unknown[])
      .filter((chunk) => typeof chunk === 'object')
      .map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`)
      .join('');
    const asked = body ?? { model: 'm', max_tokens: 9, messages: [{ role: 'user', content: 'x' }] };
    const answer = await bench.ask(dialect, JSON.stringify({ ...asked, stream: true }));
    const text = answer.body.toString();
    if (answer.status !== 200) continue;
    counts.sent += text.match(/^data: /gm)?.length ?? 0;
    counts.seen += heard(dialect, text);
    counts.seenOfDataOnly += heard(dialect, text.replace(/^event: .*\n/gm, ''));
  }
  return counts;
}

function heard(dialect: ProvenDialect, text: string): number {
  const listened = new Set(names[dialect]);
  return eventsIn(text).filter(({ event }) => listened.has(event ?? 'message')).length;
}
