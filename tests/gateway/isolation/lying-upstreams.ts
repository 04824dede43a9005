/**
 * Upstreams that redirect, that say the key which they got wherever an answer has room for it, and that break off: what an agent gets of them in every dialect,
 * streamed and whole.
 */
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { ChatUpstream } from '../../fakes/chat-upstream.ts';
import { findIn, problemsOf } from '../../chaos/security/secret-search.ts';
import { bearer, call, startRelay } from '../relay-fixture.ts';

type Lie = (
  response: ServerResponse,
  told: {
    readonly key: string;
    readonly elsewhere: string;
    readonly stream: boolean;
    readonly headers: IncomingHttpHeaders;
  },
) => void;

const event = (value: unknown): string => `data: ${JSON.stringify(value)}\n\n`;
const part = (delta: object, finish: string | null = null) =>
  event({ choices: [{ index: 0, delta, finish_reason: finish }] });
const usage = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 };

function answered(response: ServerResponse, stream: boolean, message: object): void {
  response.writeHead(200, { 'content-type': stream ? 'text/event-stream' : 'application/json' });
  if (stream)
    response.end(
      `${part({ role: 'assistant', ...message })}${part({}, 'stop')}${event({ choices: [], usage })}data: [DONE]\n\n`,
    );
  else
    response.end(
      JSON.stringify({
        choices: [{ index: 0, message: { role: 'assistant', ...message }, finish_reason: 'stop' }],
        usage,
      }),
    );
}

const redirection =
  (status: number, location: (told: { elsewhere: string; key: string }) => string): Lie =>
  (response, told) => {
    response.writeHead(status, { location: location(told) });
    response.end(`go to ${location(told)}, ${told.key}`);
  };

export const lies: Readonly<Record<string, Lie>> = {
  'redirects with 301': redirection(301, ({ elsewhere }) => `${elsewhere}/v1/chat/completions`),
  'redirects with 302 to its own key': redirection(
    302,
    ({ elsewhere, key }) => `${elsewhere}/?key=${key}`,
  ),
  'redirects with 303': redirection(303, ({ elsewhere }) => elsewhere),
  'redirects with 307': redirection(307, ({ elsewhere }) => `${elsewhere}/v1/chat/completions`),
  'redirects with 308': redirection(308, ({ elsewhere }) => `${elsewhere}/v1/chat/completions`),
  'says the key in a refusal of 401': (response, { key }) => {
    response.writeHead(401, { 'content-type': 'application/json' });
    response.end(JSON.stringify({ error: { message: `Incorrect API key provided: ${key}` } }));
  },
  'says the key in a refusal in HTML': (response, { key }) => {
    response.writeHead(503, { 'content-type': 'text/html' });
    response.end(`<p>Authorization: Bearer ${key}</p>`);
  },
  'says the key at the end of a very long refusal': (response, { key }) => {
    response.writeHead(400, { 'content-type': 'text/plain' });
    const before = 64 * 1024 - Math.floor(key.length / 2);
    response.end(`${'x'.repeat(before)}${key}${'y'.repeat(5_000)}`);
  },
  'says the key in headers': (response, { key, stream, headers }) => {
    response.setHeader('x-echo', `Bearer ${key}`);
    response.setHeader('x-all', JSON.stringify(headers));
    response.setHeader('set-cookie', `session=${key}`);
    answered(response, stream, { content: 'Yes.' });
  },
  'says the key in its text': (response, { key, stream }) =>
    answered(response, stream, { content: `I was called with Bearer ${key}.` }),
  'says the key in its thoughts': (response, { key, stream }) =>
    answered(response, stream, { reasoning_content: `They sent ${key}`, content: 'Yes.' }),
  'says the key in a call': (response, { key, stream }) =>
    answered(response, stream, {
      tool_calls: [
        {
          index: 0,
          id: `call-${key}`,
          type: 'function',
          function: { name: 'look', arguments: JSON.stringify({ key }) },
        },
      ],
    }),
  'says the key in fields of its own': (response, { key, headers }) => {
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end(
      JSON.stringify({
        ...{ id: key, model: key, system_fingerprint: key, debug: headers },
        choices: [
          { index: 0, message: { role: 'assistant', content: 'Yes.' }, finish_reason: 'stop' },
        ],
        usage,
      }),
    );
  },
  'says the key in an error within a stream': (response, { key }) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    response.write(part({ role: 'assistant', content: 'He' }));
    response.end(event({ error: { message: `the key ${key} is over its limit`, code: 429 } }));
  },
  'says the key in comments and pieces of bytes': (response, { key }) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    response.write(`: ${key.slice(0, 9)}`);
    setImmediate(() => {
      response.write(`${key.slice(9)}\n\n${part({ role: 'assistant', content: 'Yes.' }, 'stop')}`);
      response.end('data: [DONE]\n\n');
    });
  },
  'breaks off with the key on its lips': (response, { key }) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    response.write(`data: {"choices":[{"index":0,"delta":{"content":"${key}`);
    setImmediate(() => response.destroy());
  },
};

const said = [{ role: 'user', content: 'Hi' }];
const asks = {
  chat: { path: '/v1/chat/completions', body: { model: 'm', messages: said } },
  responses: { path: '/v1/responses', body: { model: 'm', input: 'Hi' } },
  messages: { path: '/v1/messages', body: { model: 'm', max_tokens: 9, messages: said } },
} as const;

export interface LyingReport {
  readonly answers: number;
  readonly problems: readonly string[];
  /** The whole answers, by dialect and lie. */
  readonly heard: ReadonlyMap<string, string>;
}

/** `key`: the upstream's. */
export async function hearLies(key: string): Promise<LyingReport> {
  const secrets = new Map([
    ['the upstream key', key],
    ['half of the upstream key', key.slice(0, key.length >> 1)],
  ]);
  let lie: Lie = (response) => void response.end();
  const problems: string[] = [];
  const heard = new Map<string, string>();
  let [answers, gone] = [0, 0];
  const elsewhere = createServer((request, response) => {
    gone += 1;
    request.resume();
    response.end('{}');
  });
  elsewhere.listen(0, '127.0.0.1');
  await once(elsewhere, 'listening');
  const elsewhereUrl = `http://127.0.0.1:${(elsewhere.address() as AddressInfo).port}`;
  try {
    await using upstream = await ChatUpstream.start((response, { headers, body }) => {
      const { stream } = JSON.parse(body.toString()) as { stream?: unknown };
      lie(response, { key, elsewhere: elsewhereUrl, stream: stream === true, headers });
    });
    await using gateway = await startRelay();
    for (const [name, made] of Object.entries(lies)) {
      lie = made;
      for (const [dialect, { path, body }] of Object.entries(asks))
        for (const stream of [true, false]) {
          const route = await gateway.route('r', `${upstream.url}/v1`, key);
          const seen = await call(`${gateway.url}${path}`, {
            ...{ headers: bearer(route), body: JSON.stringify({ ...body, stream }) },
          }).then(
            (answer) =>
              `${answer.status} ${JSON.stringify(answer.headers)} ${answer.body.toString()}`,
            (error: unknown) => String(error),
          );
          answers += 1;
          if (!stream) heard.set(`${dialect}: ${name}`, seen);
          const place = `${dialect}${stream ? ', streamed' : ''}, from an upstream that ${name}: ${seen.slice(0, 300)}`;
          problems.push(...problemsOf(findIn(seen, place, secrets)));
        }
    }
  } finally {
    elsewhere.closeAllConnections();
    elsewhere.close();
  }
  if (gone > 0) problems.push(`${gone} requests followed a redirection`);
  return { answers, problems, heard };
}
