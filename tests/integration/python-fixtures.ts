/** Every stream and whole answer of the fixtures, played by an upstream and read by the vendors' Python packages through the gateway. */
import assert from 'node:assert/strict';
import { ChatUpstream } from '../fakes/chat-upstream.ts';
import { loadCases } from '../gateway/golden.ts';
import { startRelay } from '../gateway/relay-fixture.ts';
import type { ModelClients } from '../support/model-clients.ts';

type Json = Readonly<Record<string, unknown>>;

interface Fixture {
  readonly case: string;
  readonly title: string;
  readonly direction: string;
  readonly chunks?: readonly unknown[];
  readonly document?: Json;
  readonly completion?: Json;
  readonly body?: Json;
  readonly problem?: unknown;
  readonly events?: readonly unknown[];
  readonly response?: Json;
  readonly message?: Json | null;
  readonly shows_thinking?: boolean;
  readonly max_tokens?: number | null;
  readonly stop?: readonly string[];
}

/** What was played, and how much of it came to an end that is no failure. */
export interface PlayedFixtures {
  readonly played: number;
  readonly read: number;
}

/** `step`: of so many only the first one. */
export async function playFixtures(
  dialect: 'messages' | 'responses',
  clients: ModelClients,
  step = 1,
): Promise<PlayedFixtures> {
  const told = { answer: '' };
  await using upstream = await ChatUpstream.start((response) => {
    const isWhole = told.answer.startsWith('{');
    response.writeHead(200, { 'content-type': isWhole ? 'application/json' : 'text/event-stream' });
    response.end(told.answer);
  });
  await using gateway = await startRelay();
  const route = await gateway.route('r', `${upstream.url}/v1`);
  const counts = { played: 0, read: 0 };
  const playable = (loadCases(dialect) as readonly Fixture[]).filter(
    ({ direction, problem }) => ['stream', 'whole'].includes(direction) && problem === undefined,
  );
  for (const [index, each] of playable.entries()) {
    if (index % step !== 0) continue;
    const { chunks, direction } = each;
    const whole = each.document ?? each.completion;
    told.answer = whole === undefined ? streamOf(chunks ?? []) : JSON.stringify(whole);
    const stream = direction === 'stream';
    const params = dialect === 'messages' ? messagesParams(each) : responsesParams(each);
    const answer = await clients.ask({
      ...{ dialect, url: gateway.url, key: route.apiKey, stream },
      params: { model: 'mock', ...params },
    });
    counts.played += 1;
    const what = `${each.case}: ${each.title}`;
    if (dialect === 'messages') {
      if (each.message === null) assert.ok(answer.error !== null, what);
      else assert.deepEqual(messageIn(answer.result), messageIn(each.message ?? null), what);
      if (each.message !== null) counts.read += 1;
      continue;
    }
    const last = (answer.last?.['response'] ?? answer.result) as Json | null;
    const wanted = each.response ?? ((each.events?.at(-1) as Json)['response'] as Json);
    assert.deepEqual(responseIn(last), responseIn(wanted), what);
    if (wanted['status'] !== 'failed') counts.read += 1;
  }
  return counts;
}

function streamOf(chunks: readonly unknown[]): string {
  return `: begin\n\n${chunks
    .filter((chunk) => typeof chunk === 'object')
    .map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`)
    .join('')}`;
}

function messagesParams({ max_tokens = null, stop, shows_thinking }: Fixture): Json {
  return {
    ...{ max_tokens: max_tokens ?? 1_000, messages: [{ role: 'user', content: 'Go.' }] },
    // The package asks for a limit where the fixture has none.
    extra_body: { max_tokens },
    ...(stop !== undefined && { stop_sequences: stop }),
    ...(shows_thinking === false && {
      thinking: { type: 'enabled', budget_tokens: 1_024, display: 'omitted' },
    }),
  };
}

/** The package knows fewer fields than clients send. */
function responsesParams({ body = {} }: Fixture): Json {
  return { input: 'Go.', extra_body: { ...body, stream: undefined } };
}

const list = (value: unknown): readonly Json[] => (value ?? []) as readonly Json[];

/** Without ids, and without what the package adds of its own. */
function messageIn(message: Json | null): unknown {
  const usage = message?.['usage'] as Json | undefined;
  return {
    content: list(message?.['content']).map(({ type, text, thinking, id, name, input }) =>
      plain({ type, text, thinking, id, name, input }),
    ),
    why: [message?.['stop_reason'], message?.['stop_sequence']],
    usage: [usage?.['input_tokens'], usage?.['output_tokens'], usage?.['cache_read_input_tokens']],
  };
}

function responseIn(response: Json | null): unknown {
  const usage = response?.['usage'] as Json | null | undefined;
  const parts = (value: unknown) => list(value).map(({ type, text }) => ({ type, text }));
  return {
    status: response?.['status'],
    output: list(response?.['output']).map((item) =>
      plain({
        ...{ type: item['type'], call: item['call_id'], name: item['name'] },
        ...{ namespace: item['namespace'] ?? undefined, input: item['input'] },
        ...{ arguments: item['arguments'], status: item['status'] },
        ...{ content: parts(item['content']), summary: parts(item['summary']) },
      }),
    ),
    usage: [usage?.['input_tokens'], usage?.['output_tokens'], usage?.['total_tokens']],
  };
}

function plain(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value)) as unknown;
}
