import assert from 'node:assert/strict';
import os from 'node:os';
import type { AgentOptions, AgentResolver } from '../../../src/agents/agent.ts';
import { NativeBackend } from '../../../src/backends/native/native-backend.ts';
import { compileNativeOptions } from '../../../src/backends/native/native-options.ts';
import { hostEndpointOf } from '../../../src/backends/native/native-trial-config.ts';
import { systemClock } from '../../../src/core/clock.ts';
import { RolloutError } from '../../../src/core/errors.ts';
import { silentLogger } from '../../../src/core/logger.ts';
import { seenFromInside } from '../../../src/environments/host-address.ts';
import { FakeMachine } from '../../fakes/environment/fake-machine.ts';
import { FakeProvider } from '../../fakes/environment/fake-provider.ts';
import { ChatUpstream } from '../../fakes/chat-upstream.ts';
import { call, startRelay } from '../../gateway/relay-fixture.ts';
import { HeardHooks, nativeBench, portsOn, requestFor } from './native-bench.ts';
import { configOf, custom, installed, lines, type Fields } from './contract-lines.ts';

const oneModelCall: AgentResolver = () =>
  Promise.resolve((options: AgentOptions) => ({
    ...{ name: 'one-call', version: '1', hostFiles: [], hostOnlyVariables: [] },
    capabilities: { resume: false, loadTrajectory: false, windows: false },
    setup: () => Promise.resolve(),
    async run({ environment }, signal) {
      const { OPENAI_BASE_URL: url } = options.env;
      const { stdout } = await environment.exec({ command: 'echo "$OPENAI_BASE_URL"' }, signal);
      throw new RolloutError(
        'AGENT_FAILED',
        `${String(url)} ${stdout.trim()} ${environment.hostEndpointUrl ?? 'none'}`,
        { phase: 'agent' },
      );
    },
  }));

/** What the agent saw, as the message of its failure. */
async function seenBy(options: Fields, baseUrl: string): Promise<readonly string[]> {
  await using bench = await nativeBench({
    options: { agent: null, ...options },
    resolveAgent: oneModelCall,
  });
  const route = { baseUrl, apiKey: 'route-key-1234' };
  const { errMessage } = await bench.backend.execute(
    requestFor(bench.taskDir, { route }),
    new HeardHooks(),
  ).result;
  return (errMessage ?? '').split(' ');
}

lines('the endpoint', [
  [
    'is opaque: path ids, percent-encoding and query byte for byte, in options and variables',
    () => {
      const baseUrl = 'http://[::1]:8001/a%2Fb/%E2%82%AC//v1;p?session=a%20b&x=%2f#';
      const route = { baseUrl, apiKey: 'k' };
      assert.equal(configOf({}, { route }).agent.kwargs['api_base'], baseUrl);
      assert.equal(configOf(custom(installed), { route }).agent.env['OPENAI_BASE_URL'], baseUrl);
      assert.deepEqual(hostEndpointOf({ route }, compileNativeOptions(custom(installed))), {
        host: '::1',
        port: 8001,
      });
    },
  ],
  [
    'of an agent that works in the server’s process is the host’s own',
    () => {
      for (const options of [{}, custom('custom-chat-completions'), { agent: 'oracle' }])
        assert.equal(hostEndpointOf(requestFor('/task'), compileNativeOptions(options)), null);
    },
  ],
  [
    'of an agent in the sandbox is the one address of the host that the sandbox reaches',
    async () => {
      const [outside, inside, url] = await seenBy(
        custom(installed),
        'http://127.0.0.1:8001/v1?a=%2F',
      );
      assert.equal(outside, 'http://127.0.0.1:8001/v1?a=%2F');
      assert.match(url ?? '', /^http:\/\//);
      assert.equal(inside, `${String(url).replace(/\/$/, '')}/v1?a=%2F`);
    },
  ],
  [
    'is re-addressed only where it is the endpoint, not where it begins like it',
    () => {
      const seen = { endpoint: { host: '127.0.0.1', port: 80 }, insideUrl: 'http://10.0.0.1:5/' };
      const rows: readonly (readonly [string, string])[] = [
        ['http://127.0.0.1:80', 'http://10.0.0.1:5'],
        ['http://127.0.0.1/v1', 'http://10.0.0.1:5/v1'],
        [
          'http://127.0.0.1:80/v1?u=http://127.0.0.1:80',
          'http://10.0.0.1:5/v1?u=http://127.0.0.1:80',
        ],
        ['http://127.0.0.1:8000/v1', 'http://127.0.0.1:8000/v1'],
        ['http://127.0.0.11/v1', 'http://127.0.0.11/v1'],
        ['http://user@127.0.0.1:80/v1', 'http://user@127.0.0.1:80/v1'],
        ['127.0.0.1:80', '127.0.0.1:80'],
      ];
      for (const [from, to] of rows) assert.equal(seenFromInside(from, seen), to);
    },
  ],
  [
    'that the sandbox cannot reach is refused before the server listens',
    async () => {
      const provider = new FakeProvider(new FakeMachine({ capabilities: { hostEndpoint: false } }));
      await using backend = closing(provider, custom(installed));
      await assert.rejects(backend.start(AbortSignal.timeout(60_000)), {
        code: 'CAPABILITY_UNSUPPORTED',
        field: 'backend.native.environment',
      });
    },
  ],
  [
    'that is empty never falls back: no trial is made, though the server has a key and an address of its own',
    async () => {
      for (const options of [
        { agent: 'terminus-2' },
        { agent: null, ...custom('custom-chat-completions') },
        { agent: null, ...custom(installed) },
      ]) {
        await using bench = await nativeBench({
          options,
          resolveAgent: () => assert.fail('no agent is made'),
        });
        const { result } = bench.backend.execute(
          requestFor(bench.taskDir, { route: null }),
          new HeardHooks(),
        );
        const { outcome, errCategory } = await result;
        assert.deepEqual([outcome.cause, errCategory], ['MODEL_UNSPECIFIED', 'validation_error']);
      }
    },
  ],
  [
    'has one key per rollout, which reaches the upstream of that rollout only',
    async () => {
      await using one = await ChatUpstream.start((response) => {
        response.end('{}');
      });
      await using two = await ChatUpstream.start((response) => {
        response.end('{}');
      });
      await using relay = await startRelay();
      const routes = [
        await relay.route('r-1', `${one.url}/v1`),
        await relay.route('r-2', `${two.url}/v1`),
      ];
      assert.notEqual(routes[0]?.apiKey, routes[1]?.apiKey);
      for (const { apiKey, baseUrl } of routes)
        await call(`${baseUrl}/chat/completions`, {
          headers: { authorization: `Bearer ${apiKey}` },
          body: '{}',
        });
      assert.deepEqual([one.received.length, two.received.length], [1, 1]);
    },
  ],
  [
    'gets no identity header: only what the agent sent, with the controller’s key in the place of ours',
    async () => {
      await using upstream = await ChatUpstream.start((response) => {
        response.end('{}');
      });
      await using relay = await startRelay();
      const { apiKey, baseUrl } = await relay.route('rollout-of-a-tenant', `${upstream.url}/v1`);
      await call(`${baseUrl}/chat/completions`, {
        headers: { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' },
        body: '{}',
      });
      const { headers = {}, rawHeaders = [] } = upstream.received[0] ?? {};
      assert.equal(headers.authorization, 'Bearer upstream-key-0123456789');
      const expected = [
        'authorization',
        'connection',
        'content-length',
        'content-type',
        'host',
        'accept-encoding',
        'transfer-encoding',
      ];
      assert.deepEqual(
        Object.keys(headers).filter((name) => !expected.includes(name)),
        [],
      );
      assert.doesNotMatch(rawHeaders.join(' '), /rollout-of-a-tenant/);
    },
  ],
]);

function closing(provider: FakeProvider, options: Fields) {
  const backend = new NativeBackend(
    { environment: provider.kind, ...options },
    {
      ...{ ports: portsOn(provider), limits: { maxConcurrent: 1, maxQueueDepth: 0 } },
      ...{ dataDir: os.tmpdir(), baseDir: os.tmpdir(), clock: systemClock, logger: silentLogger },
    },
  );
  return Object.assign(backend, { [Symbol.asyncDispose]: () => backend.close() });
}

async function healthOf(options: Fields): Promise<Fields> {
  await using bench = await nativeBench({ options });
  return bench.backend.health();
}

lines('a native rollout', [
  [
    'does not see the request’s messages, and its label only goes along',
    async () => {
      await using bench = await nativeBench();
      const prompt = [{ role: 'user', content: 'do something else' }];
      const request = requestFor(bench.taskDir, { prompt, label: 'never compared' });
      const { sample } = await bench.backend.execute(request, new HeardHooks()).result;
      assert.deepEqual(
        [sample?.reward, sample?.label, sample?.messages],
        [1, 'never compared', []],
      );
    },
  ],
  [
    'has exactly one sample, with one reward',
    async () => {
      await using bench = await nativeBench();
      const { sample, status } = await bench.backend.execute(
        requestFor(bench.taskDir),
        new HeardHooks(),
      ).result;
      assert.ok(sample !== null && !Array.isArray(sample));
      assert.deepEqual([status, sample.reward], ['success', 1]);
    },
  ],
  [
    'whose agent fails in a way that a retry could help is not attempted twice',
    async () => {
      let runs = 0;
      const resolveAgent: AgentResolver = () => {
        runs += 1;
        return Promise.reject(new RolloutError('ENGINE_UNAVAILABLE', 'gone', { phase: 'agent' }));
      };
      await using bench = await nativeBench({ resolveAgent });
      const { outcome } = await bench.backend.execute(requestFor(bench.taskDir), new HeardHooks())
        .result;
      assert.deepEqual([outcome.retryable, runs], [true, 1]);
    },
  ],
  [
    'says in /health which binding it has, what that speaks, and whether it evaluates and trains',
    async () => {
      const { max_concurrency, max_queue_depth, ...oracle } = await healthOf({});
      assert.deepEqual([max_concurrency, max_queue_depth], [8, 8]);
      assert.deepEqual(oracle, {
        ...{
          status: 'ok',
          backend: 'native_harbor',
          agent: 'oracle',
          binding: 'oracle',
          binding_protocol: 'none',
        },
        ...{ protocol_capabilities: ['OpenAI Chat Completions'], gateway_routing: null },
        ...{ evaluation_supported: true, training_supported: false },
      });
      const { agent, binding, binding_protocol, training_supported } = await healthOf({
        agent: null,
        ...custom(installed),
      });
      assert.deepEqual(
        [agent, binding, binding_protocol, training_supported],
        ['my_agents.solver:Solver', installed, 'OpenAI Chat Completions', true],
      );
      const codex = await healthOf({ agent: 'codex' });
      assert.deepEqual(
        [codex['protocol_capabilities'], codex['gateway_routing'], codex['training_supported']],
        [
          ['OpenAI Chat Completions', 'OpenAI Responses', 'Anthropic Messages'],
          ...['header_token', true],
        ],
      );
    },
  ],
]);
