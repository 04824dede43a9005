/** What all clients do alike, seen through the chat client on hosts that misbehave. */
import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import { createServer } from 'node:net';
import { describe, it } from 'node:test';
import { isRolloutError, type ErrorCode } from '../../../src/core/errors.ts';
import { never } from '../../../src/core/linked-abort.ts';
import { openEngine } from '../../../src/engines/registry.ts';
import { sendEvents, sendJson, type Answer } from './fake-host.ts';
import { chatRequest, partsOf, resultOf, withEngine } from './requests.ts';

const chunk = (content: string) => ({ choices: [{ index: 0, delta: { content } }] });
const last = { choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] };
const whole = { choices: [{ message: { content: 'Hi' }, finish_reason: 'stop' }] };
const streaming = () => chatRequest({ isStreaming: true });
const coded = (code: ErrorCode) => (error: unknown) => isRolloutError(error, code);

describe('a stream', () => {
  const rows: readonly (readonly [string, Answer, ErrorCode])[] = [
    [
      'that ends without a finish reason',
      (_, response) => {
        sendEvents(response, [chunk('Hi'), '[DONE]']);
        response.end();
      },
      'ENGINE_STREAM_BROKEN',
    ],
    [
      'that is cut',
      (_, response) => {
        sendEvents(response, [chunk('Hi')]);
        setImmediate(() => response.destroy());
      },
      'ENGINE_STREAM_BROKEN',
    ],
    [
      'with a chunk that is not JSON',
      (_, response) => sendEvents(response, [chunk('Hi'), '{"choices": [']),
      'ENGINE_RESPONSE_INVALID',
    ],
    [
      'with bytes that are not UTF-8',
      (_, response) => {
        sendEvents(response, [chunk('Hi')]);
        response.write(Buffer.from(`data: ${JSON.stringify(chunk('\xff'))}\n\n`, 'latin1'));
      },
      'ENGINE_RESPONSE_INVALID',
    ],
    [
      'with an error inside',
      (_, response) => sendEvents(response, [chunk('Hi'), { error: { code: 503, message: 'x' } }]),
      'ENGINE_OVERLOADED',
    ],
    [
      'that does not end',
      async (_, response) => {
        const more = chunk('x'.repeat(1024 * 1024));
        for (let sent = 0; sent < 100 && !response.destroyed; sent += 1) {
          sendEvents(response, [more]);
          await new Promise(setImmediate);
        }
        sendEvents(response, [last, '[DONE]']);
      },
      'ENGINE_RESPONSE_INVALID',
    ],
  ];
  for (const [what, answer, code] of rows)
    it(`${what} is ${code}, and its connection is closed`, async () => {
      await withEngine('chat', answer, async (engine, host) => {
        const call = await engine.generate(streaming(), never);
        await assert.rejects(partsOf(call), coded(code));
        await host.until(() => host.cut > 0 || code === 'ENGINE_STREAM_BROKEN');
      });
    });

  it('that is cut before anybody reads harms nobody until it is read', async () => {
    await withEngine(
      'chat',
      (_, response) => {
        sendEvents(response, [chunk('Hi')]);
        setTimeout(() => response.destroy(), 10);
      },
      async (engine, host) => {
        const call = await engine.generate(streaming(), never);
        await host.until(() => host.cut > 0);
        // A failure that nobody handles would be told by now.
        for (let turn = 0; turn < 20; turn += 1) await new Promise(setImmediate);
        await assert.rejects(partsOf(call), coded('ENGINE_STREAM_BROKEN'));
      },
    );
  });

  it('that ends after the finish reason without [DONE] is whole', async () => {
    const result = await withEngine(
      'chat',
      (_, response) => {
        sendEvents(response, [chunk('Hi'), last]);
        response.end();
      },
      (engine) => resultOf(engine, streaming()),
    );
    assert.equal(result.text, 'Hi');
  });

  it('that does not close after [DONE] is over all the same', async () => {
    const result = await withEngine(
      'chat',
      (_, response) => sendEvents(response, [chunk('Hi'), last, '[DONE]']),
      (engine) => resultOf(engine, streaming()),
    );
    assert.equal(result.text, 'Hi');
  });

  it('that was asked for but comes whole is read', async () => {
    const result = await withEngine(
      'chat',
      (_, response) => sendJson(response, whole),
      (engine) => resultOf(engine, streaming()),
    );
    assert.equal(result.text, 'Hi');
  });

  it('of which characters are cut in two by the network is put together', async () => {
    const bytes = Buffer.from(`data: ${JSON.stringify(chunk('é🎈'))}\r\n\r\n`);
    const result = await withEngine(
      'chat',
      async (_, response) => {
        response.writeHead(200, { 'content-type': 'text/event-stream' });
        for (const byte of bytes) {
          response.write(Buffer.from([byte]));
          await new Promise(setImmediate);
        }
        sendEvents(response, [last, '[DONE]']);
        response.end();
      },
      (engine) => resultOf(engine, streaming()),
    );
    assert.equal(result.text, 'é🎈');
  });

  it('that falls silent is ENGINE_STALLED, also before its headers', async () => {
    for (const answer of [
      () => undefined,
      ((_, response) => sendEvents(response, [chunk('Hi')])) satisfies Answer,
    ])
      await withEngine(
        'chat',
        answer,
        async (engine, host) => {
          await assert.rejects(resultOf(engine, streaming()), coded('ENGINE_STALLED'));
          await host.until(() => host.cut > 0);
        },
        { stallMs: 50 },
      );
  });

  it('whose reader is slow is not stalled', async () => {
    await withEngine(
      'chat',
      (_, response) => {
        sendEvents(response, [chunk('Hi'), last, '[DONE]']);
        response.end();
      },
      async (engine) => {
        const call = await engine.generate(streaming(), never);
        for await (const part of call)
          if (part.type === 'text-delta') await new Promise((resolve) => setTimeout(resolve, 60));
      },
      { stallMs: 20 },
    );
  });
});

describe('an answer that is not streamed', () => {
  const rows: readonly (readonly [string, unknown])[] = [
    ['not JSON', '<html>'],
    ['not UTF-8', Buffer.from(JSON.stringify(whole).replace('Hi', '\xff'), 'latin1')],
    ['no completion', { hello: 1 }],
    ['without choices', { choices: [] }],
    ['without a finish reason', { choices: [{ message: { content: 'Hi' } }] }],
  ];
  for (const [what, document] of rows)
    it(`${what} is ENGINE_RESPONSE_INVALID`, async () => {
      await withEngine(
        'chat',
        (_, response) => sendJson(response, document),
        async (engine) => {
          const call = resultOf(engine, chatRequest());
          await assert.rejects(call, coded('ENGINE_RESPONSE_INVALID'));
        },
      );
    });

  it('may begin late: silence before it is no stall', async () => {
    const result = await withEngine(
      'chat',
      (_, response) => void setTimeout(() => sendJson(response, whole), 80),
      (engine) => resultOf(engine, chatRequest()),
      { stallMs: 20 },
    );
    assert.equal(result.text, 'Hi');
  });
});

describe('a signal', () => {
  const hanging: Answer = (_, response) => sendEvents(response, [chunk('Hi')]);

  it('that has fired sends nothing', async () => {
    await withEngine('chat', hanging, async (engine, host) => {
      const reason = new Error('not wanted');
      const call = engine.generate(streaming(), AbortSignal.abort(reason));
      await assert.rejects(call, reason);
      assert.equal(host.asked.length, 0);
    });
  });

  it('that fires before the answer, between the parts or before anybody reads closes the connection', async () => {
    for (const when of ['before the answer', 'while parts are read', 'before anybody reads']) {
      const reason = new Error(when);
      const controller = new AbortController();
      const answer: Answer = when === 'before the answer' ? () => undefined : hanging;
      await withEngine('chat', answer, async (engine, host) => {
        const opening = engine.generate(streaming(), controller.signal);
        if (when === 'before the answer') {
          await host.until(() => host.asked.length > 0);
          controller.abort(reason);
          await assert.rejects(opening, reason);
        } else {
          const call = await opening;
          if (when === 'before anybody reads') controller.abort(reason);
          await assert.rejects(async () => {
            for await (const part of call) if (part.type === 'text-delta') controller.abort(reason);
          }, reason);
        }
        await host.until(() => host.cut > 0);
        assert.deepEqual(getEventListeners(controller.signal, 'abort'), []);
      });
    }
  });

  it('keeps no listener after a call, whole or failed', async () => {
    const { signal } = new AbortController();
    let asked = 0;
    await withEngine(
      'chat',
      (_, response) => {
        asked += 1;
        sendJson(response, asked === 1 ? whole : 'broken', { status: asked === 3 ? 500 : 200 });
      },
      async (engine) => {
        await partsOf(await engine.generate(chatRequest(), signal));
        await assert.rejects(async () => partsOf(await engine.generate(chatRequest(), signal)));
        await assert.rejects(engine.generate(chatRequest(), signal));
        // Here, and not after the client's end, which would undo what is left.
        assert.deepEqual(getEventListeners(signal, 'abort'), []);
      },
    );
  });

  it('that fires while nobody ever reads harms nobody', async () => {
    await withEngine('chat', hanging, async (engine, host) => {
      const controller = new AbortController();
      await engine.generate(streaming(), controller.signal);
      controller.abort(new Error('forgotten'));
      await host.until(() => host.cut > 0);
      // A failure that nobody handles would be told by now.
      for (let turn = 0; turn < 5; turn += 1) await new Promise(setImmediate);
      await engine.close();
    });
  });

  it('that fires in the middle of what has come already is the last that is heard', async () => {
    await withEngine(
      'chat',
      (_, response) => {
        sendEvents(response, []);
        const documents = [chunk('Hi'), chunk('Ho'), last];
        const text = documents.map((each) => `data: ${JSON.stringify(each)}\n\n`).join('');
        response.end(`${text}data: [DONE]\n\n`);
      },
      async (engine) => {
        const controller = new AbortController();
        const reason = new Error('enough');
        const heard: string[] = [];
        await assert.rejects(async () => {
          for await (const part of await engine.generate(streaming(), controller.signal)) {
            heard.push(part.type);
            controller.abort(reason);
          }
        }, reason);
        assert.deepEqual(heard, ['text-delta']);
      },
    );
  });

  it('of a reader that leaves early, or never begins, is not needed: leaving closes the connection', async () => {
    for (const hasBegun of [true, false])
      await withEngine('chat', hanging, async (engine, host) => {
        const call = await engine.generate(streaming(), never);
        if (hasBegun) for await (const part of call) if (part.type === 'text-delta') break;
        if (!hasBegun) await call[Symbol.asyncIterator]().return?.();
        await host.until(() => host.cut > 0);
      });
  });
});

describe('a connection', () => {
  it('serves one call after the other, streamed or not', async () => {
    await withEngine(
      'chat',
      (asked, response) => {
        if (asked.body['stream'] !== true) {
          sendJson(response, whole);
          return;
        }
        sendEvents(response, [chunk('Hi'), last, '[DONE]']);
        response.end();
      },
      async (engine, host) => {
        for (let round = 0; round < 10; round += 1) {
          await resultOf(engine, streaming());
          // The end of the answer is on its way when the result is there.
          await host.until(() => host.open === 0);
          for (let turn = 0; turn < 5; turn += 1) await new Promise(setImmediate);
          await resultOf(engine, chatRequest());
        }
        // Now and then a call comes before the client has seen the last end.
        assert.ok(host.connections < 8, `${host.connections} connections for 20 calls`);
      },
    );
  });
});

describe('the end of a client', () => {
  const late: Answer = (asked, response) => {
    sendEvents(response, [chunk('Hi')]);
    if (asked.body['user'] !== 'hang')
      setTimeout(() => {
        sendEvents(response, [last, '[DONE]']);
        response.end();
      }, 20);
  };

  it('by close lets running calls finish and refuses new ones', async () => {
    await withEngine('chat', late, async (engine) => {
      const call = await engine.generate(streaming(), never);
      const closing = [engine.close(), engine.close()];
      await assert.rejects(engine.generate(streaming(), never), coded('ENGINE_UNAVAILABLE'));
      assert.equal((await partsOf(call)).at(-1)?.type, 'end');
      await Promise.all(closing);
    });
  });

  it('by destroy fails running calls with its reason, also while close waits for them', async () => {
    await withEngine('chat', late, async (engine, host) => {
      const reason = new Error('going down');
      const call = await engine.generate(
        chatRequest({ isStreaming: true, extraBody: { user: 'hang' } }),
        never,
      );
      const closing = engine.close();
      await Promise.all([
        assert.rejects(partsOf(call), reason),
        engine.destroy(reason),
        engine.destroy(new Error('again')),
        closing,
      ]);
      await assert.rejects(engine.generate(streaming(), never), reason);
      await assert.rejects(engine.health(never), reason);
      await host.until(() => host.cut > 0);
    });
  });
});

describe('a host', () => {
  it('that is not there is ENGINE_UNAVAILABLE, and unhealthy', async () => {
    const server = createServer().listen(0, '127.0.0.1');
    await new Promise((resolve) => server.once('listening', resolve));
    const { port } = server.address() as { port: number };
    await new Promise((resolve) => server.close(resolve));
    const engine = await openEngine({
      kind: 'chat',
      baseUrl: `http://user:password@127.0.0.1:${port}/v1?secret=1`,
      apiKey: 'sk-secret',
    });
    await assert.rejects(engine.generate(chatRequest(), never), (error) => {
      assert.ok(isRolloutError(error, 'ENGINE_UNAVAILABLE'));
      assert.match(error.message, /ECONNREFUSED/);
      assert.doesNotMatch(error.message, /password|secret/);
      return true;
    });
    assert.deepEqual(await engine.health(never), {
      isHealthy: false,
      model: null,
      weightVersion: null,
    });
    await engine.close();
  });

  it('gets the key, the request id, the path and the query as they are', async () => {
    await withEngine(
      'chat',
      (_, response) => sendJson(response, whole),
      async (engine, host) => {
        const base = `${host.url}/k%2Fey/v1?x=%41&y`;
        const other = await openEngine({ kind: 'chat', baseUrl: base, apiKey: 'sk-1' });
        const headers = { 'X-Session-ID': 's1' };
        await resultOf(other, chatRequest({ requestId: 'r9', headers }));
        await other.close();
        const [asked] = host.asked;
        assert.equal(asked?.target, '/k%2Fey/v1/chat/completions?x=%41&y');
        assert.equal(asked.headers.authorization, 'Bearer sk-1');
        assert.equal(asked.headers['x-request-id'], 'r9');
        assert.equal(asked.headers['x-session-id'], 's1');
        assert.equal(engine.url, host.url);
      },
    );
  });
});
