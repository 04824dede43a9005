/** What every way to run the gateway keeps of `GatewayControl`: the same calls, answers and refusals, whichever process serves them. */
import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm, stat } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';
import { openGateway, type ServedGateway } from '../../src/app/serve/gateway/open-gateway.ts';
import { composeApp } from '../../src/app/compose.ts';
import { readMachine } from '../../src/config/machine.ts';
import { compileServeConfig } from '../../src/config/serve/read-serve-config.ts';
import { systemClock, type Clock } from '../../src/core/clock.ts';
import { never } from '../../src/core/linked-abort.ts';
import type { GatewayControl } from '../../src/gateway/gateway-control.ts';
import type { RelayedCall } from '../../src/gateway/model-gateway.ts';
import type { ModelRoute } from '../../src/wire/rollout/model-route.ts';
import type { RouteRules } from '../../src/wire/rollout/route-rules.ts';
import { UrlPolicy } from '../../src/wire/url-policy.ts';
import { ChatUpstream } from '../fakes/chat-upstream.ts';
import { bearer, call, openCall } from '../gateway/relay-fixture.ts';
import { until } from '../support/until.ts';

const whole = '{"choices":[{"index":0,"message":{"role":"assistant","content":"hi"}}]}';

/** `/held/…` begins an answer and never ends it, `/silent/…` says nothing, all else answers at once. */
export async function startUpstream(): Promise<ChatUpstream> {
  return await ChatUpstream.start((response, { url }) => {
    if (url.startsWith('/silent')) return;
    response.writeHead(200, { 'content-type': 'application/json' });
    if (url.startsWith('/held')) response.write(whole.slice(0, 9));
    else response.end(whole);
  });
}

export interface OpenedGateway extends AsyncDisposable {
  readonly gateway: ServedGateway;
  readonly urls: readonly string[];
  readonly dataDir: string;
  readonly calls: readonly RelayedCall[];
  readonly lines: readonly string[];
}

export async function openServedGateway(
  workers: number,
  {
    dataPort = 0,
    clock = systemClock,
  }: { readonly dataPort?: number; readonly clock?: Clock } = {},
): Promise<OpenedGateway> {
  const dataDir = await mkdtemp(path.join(os.tmpdir(), 'slipway-gateway-'));
  const variables = { HOME: dataDir, SLIPWAY_STATE_DIR: dataDir };
  const document = {
    data_dir: dataDir,
    listen: { data_port: dataPort },
    gateway: { workers },
    callbacks: { private_addresses: 'allow' },
  };
  const machine = readMachine(variables, dataDir);
  const config = compileServeConfig({ flags: {}, document, file: null }, machine);
  const calls: RelayedCall[] = [];
  const lines: string[] = [];
  const gateway = openGateway(config, {
    ports: { ...(await composeApp(variables, dataDir)), clock },
    policy: new UrlPolicy(config.callbacks),
    logger: {
      log: (level, message, fields) =>
        void lines.push(`${level} ${message} ${JSON.stringify(fields)}`),
    },
    health: () => ({ status: 'ok' }),
    onCall: (ended) => void calls.push(ended),
  });
  const urls = await gateway.listen().catch(async (error: unknown) => {
    await rm(dataDir, { recursive: true, force: true });
    throw error;
  });
  return {
    ...{ gateway, urls, dataDir, calls, lines },
    async [Symbol.asyncDispose]() {
      await gateway.stopListening();
      await gateway.close();
      await rm(dataDir, { recursive: true, force: true });
    },
  };
}

export function describeGateway(name: string, workers: number): void {
  describe(`the gateway ${name}`, { timeout: 120_000 }, () => {
    let opened: OpenedGateway;
    let control: GatewayControl;
    let upstream: ChatUpstream;

    before(async () => {
      upstream = await startUpstream();
      opened = await openServedGateway(workers);
      ({ control } = opened.gateway);
    });
    after(async () => {
      await opened[Symbol.asyncDispose]();
      await upstream[Symbol.asyncDispose]();
    });

    const register = async (
      rolloutId: string,
      prefix = '',
      rules: RouteRules = { pins: {}, budgets: {} },
    ): Promise<ModelRoute> =>
      await control.register({
        ...{ rolloutId, rules, upstreamKey: 'upstream-key-0123456789' },
        upstreamUrl: `${upstream.url}${prefix}/v1`,
      });
    const ask = async ({ baseUrl, ...route }: ModelRoute, body = '{}') =>
      await call(`${baseUrl}/chat/completions`, {
        headers: bearer({ baseUrl, ...route }),
        body,
      });
    /** A call whose answer has begun. */
    const hold = async (route: ModelRoute) =>
      await openCall(`${route.baseUrl}/chat/completions`, { headers: bearer(route), body: '{}' });

    it('gives a rollout an address and a key, and keeps the key of the upstream', async () => {
      const route = await register('key');
      assert.ok(opened.urls.some((url) => route.baseUrl === `${url}/v1`));
      assert.equal((await ask(route)).status, 200);
      const got = upstream.received.at(-1);
      assert.equal(got?.headers.authorization, 'Bearer upstream-key-0123456789');
      assert.equal((await ask({ ...route, apiKey: 'sk-slipway-none' })).status, 401);
    });

    it('tells of every call that has ended', async () => {
      await ask(await register('told'));
      const ofIt = (): readonly RelayedCall[] =>
        opened.calls.filter(({ rolloutId }) => rolloutId === 'told');
      await until('it is told', () => ofIt().length === 1);
      assert.deepEqual([ofIt()[0]?.status, ofIt()[0]?.answerBytes], [200, whole.length]);
    });

    for (const [what, upstreamUrl, code, field] of [
      ['no address', '', 'MODEL_UNSPECIFIED', 'chat_completions_url'],
      ['no URL', 'nowhere', 'CONFIG_INVALID', 'chat_completions_url'],
    ] as const)
      it(`refuses ${what}, typed`, async () => {
        const asked = control.register({ rolloutId: 'refused', upstreamUrl, upstreamKey: null });
        await assert.rejects(asked, { code, field });
        assert.equal(await control.activity('refused'), null);
      });

    it('kills a key by a second registration, and ends its calls', async () => {
      const first = await register('twice', '/held');
      const held = await hold(first);
      const second = await register('twice');
      await assert.rejects(held.toArray());
      assert.deepEqual([(await ask(first)).status, (await ask(second)).status], [401, 200]);
    });

    it('lets running calls of a revoked key go on until they are aborted', async () => {
      const route = await register('revoked', '/held');
      const held = await hold(route);
      await control.revoke('revoked');
      await control.revoke('revoked');
      assert.equal((await ask(route)).status, 401);
      assert.equal(await control.activity('revoked'), null);
      assert.equal(held.destroyed, false);
      assert.deepEqual(await control.abort('revoked'), { callsEnded: 1 });
      await assert.rejects(held.toArray());
    });

    it('ends running calls by an abort on both sides, and says how many', async () => {
      const route = await register('aborted', '/held');
      const open = upstream.open;
      const held = [await hold(route), await hold(route)];
      assert.equal(upstream.open, open + 2);
      assert.deepEqual(await control.abort('aborted'), { callsEnded: 2 });
      for (const each of held) await assert.rejects(each.toArray());
      await until('the upstream is free', () => upstream.open === open);
      assert.deepEqual(await control.abort('aborted'), { callsEnded: 0 });
      assert.deepEqual(await control.abort('never-seen'), { callsEnded: 0 });
    });

    it('ends calls by an abort also when what they leave is forgotten already', async () => {
      const route = await register('late', '/held');
      const held = await hold(route);
      await control.revoke('late');
      await control.forget('late');
      assert.deepEqual(await control.abort('late'), { callsEnded: 1 });
      await assert.rejects(held.toArray());
    });

    it('captures calls in one file, complete when the key is dead, until it is forgotten', async () => {
      const route = await register('captured');
      await ask(route, '{"messages":[]}');
      await control.revoke('captured');
      const file = await control.captured('captured');
      assert.ok(file !== null);
      assert.ok(file.startsWith(opened.dataDir));
      const steps = (await readFile(file, 'utf8')).trim().split('\n');
      assert.match(steps.at(-1) ?? '', /"calls":1/);
      assert.equal(await control.captured('captured'), file);
      await control.forget('captured');
      await control.forget('captured');
      await assert.rejects(stat(file), { code: 'ENOENT' });
      assert.equal(await control.captured('captured'), null);
      assert.equal(await control.captured('never-seen'), null);
    });

    it('says what the calls of a rollout do, with dates', async () => {
      const route = await register('active', '/held');
      const held = await hold(route);
      await until('its bytes are counted', async () => {
        const activity = await control.activity('active');
        return activity?.waiting?.bytes === 9;
      });
      const activities = await Promise.all([
        control.activity('active'),
        control.activity('active'),
        control.activity('never-seen'),
      ]);
      assert.deepEqual(
        activities.map((each) => each?.callsRunning),
        [1, 1, undefined],
      );
      assert.ok(activities[0]?.waiting?.since instanceof Date);
      held.destroy();
      await until('it has ended', async () => {
        const activity = await control.activity('active');
        return activity?.callsDone === 1 && activity.lastCallEndedAt instanceof Date;
      });
    });

    it('holds a rollout to its budget, and says which it ran into', async () => {
      const route = await register('spent', '', { pins: {}, budgets: { max_turns: 1 } });
      assert.equal((await ask(route)).status, 200);
      assert.equal((await ask(route)).status, 403);
      const spent = (await control.activity('spent'))?.spent;
      assert.deepEqual([spent?.limit, spent?.max, spent?.refused], ['max_turns', 1, 1]);
      assert.ok(spent?.at instanceof Date);
    });

    it('asks an upstream whether it answers at all, no longer than it may', async () => {
      await register('probed');
      assert.equal((await control.probe?.('probed', never))?.status, 200);
      assert.equal(await control.probe?.('never-seen', never), null);
      await register('silent', '/silent');
      const limit = new AbortController();
      const probing = control.probe?.('silent', limit.signal);
      await until('it is asked', () =>
        upstream.received.some(({ url }) => url === '/silent/v1/models'),
      );
      limit.abort(new Error('enough'));
      assert.equal((await probing)?.status, null);
    });

    it('counts the routes that live', async () => {
      const live = (): number =>
        opened.gateway.facts().reduce((sum, { routes }) => sum + routes, 0);
      const count = live();
      await register('counted');
      assert.equal(live(), count + 1);
      await control.abort('counted');
      assert.equal(live(), count);
    });

    it('has the health of the server on every address', async () => {
      for (const url of opened.urls) {
        const answer = await fetch(`${url}/health`);
        assert.equal(((await answer.json()) as { readonly status: string }).status, 'ok');
      }
    });
  });
}
