import assert from 'node:assert/strict';
import { it } from 'node:test';
import { tokensEngine } from '../../../src/gateway/tokens/tokens-engine.ts';
import { TokenSession } from '../../../src/sessions/prompts/token-session.ts';
import { ChatEngine } from '../../../src/engines/chat/chat-engine.ts';
import { strictMatcher } from '../../../src/sessions/miles/message-matcher.ts';
import { toyCodec } from '../../sessions/miles/toy-codec.ts';

it('a call ends with its signal though its prompt is never rendered', async () => {
  const forever = () => new Promise<never>(() => undefined);
  const words = {
    ...{ codec: toyCodec(), matches: strictMatcher },
    renderer: { render: forever, renderSuffix: forever },
  };
  const options = { kind: 'chat', baseUrl: 'http://127.0.0.1:1/v1', apiKey: null } as const;
  const engine = tokensEngine(new ChatEngine(options), {
    ...{ kind: 'sglang', templateVariables: {}, ...words, tokens: new TokenSession(words) },
  });
  const abort = new AbortController();
  const call = engine.generate(
    {
      ...{ requestId: 'r', model: null, sampling: {}, isStreaming: true, wantsTokens: true },
      input: { kind: 'messages', messages: [{ role: 'user', content: 'hi' }] },
    },
    abort.signal,
  );
  abort.abort(new Error('enough'));
  await assert.rejects(call, /enough/);
  await engine.close();
});
