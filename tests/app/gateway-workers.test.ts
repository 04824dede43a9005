/** Processes of the gateway that die, get stuck or cannot begin; what all of them do is in the conformance suite. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { createServer, type AddressInfo, type Server } from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { makeMs, WorkerProcess } from '../../src/app/serve/gateway/worker-process.ts';
import { readMachine } from '../../src/config/machine.ts';
import { compileServeConfig, type ServeConfig } from '../../src/config/serve/read-serve-config.ts';
import { systemClock, type Clock } from '../../src/core/clock.ts';
import { silentLogger } from '../../src/core/logger.ts';
import { isRunning, processOwner } from '../../src/store/file/run-owner.ts';
import type { RunOwner } from '../../src/store/sandbox-journal.ts';
import type { ModelRoute } from '../../src/wire/rollout/model-route.ts';
import { openServedGateway, startUpstream } from '../conformance/gateway-suite.ts';
import { ManualClock } from '../fakes/manual-clock.ts';
import { bearer, call, openCall } from '../gateway/relay-fixture.ts';
import { startServeProcess } from '../support/serve-process.ts';
import { until } from '../support/until.ts';

/** In the order of their numbers. */
async function workersIn(dataDir: string): Promise<readonly RunOwner[]> {
  return JSON.parse(await readFile(path.join(dataDir, 'gateway.json'), 'utf8')) as RunOwner[];
}

async function filesBelow(dir: string): Promise<readonly string[]> {
  const entries = await readdir(dir, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile());
  return await Promise.all(
    files.map(({ parentPath, name }) => readFile(path.join(parentPath, name), 'utf8')),
  );
}

/** Takes a port as soon as it is free. */
async function takePort(port: number): Promise<Server> {
  for (;;) {
    const server = createServer((socket) => void socket.destroy());
    server.listen(port, '127.0.0.1');
    const isTaken = await once(server, 'listening').then(
      () => true,
      () => false,
    );
    if (isTaken) return server;
  }
}

async function ask(route: ModelRoute): Promise<number | null> {
  const asked = call(`${route.baseUrl}/chat/completions`, { headers: bearer(route), body: '{}' });
  return await asked.then(
    ({ status }) => status,
    () => null, // no connection
  );
}

describe('processes of the gateway', { timeout: 180_000 }, () => {
  it('are followed by others that serve the same rollouts under the same keys, when they die', async () => {
    await using upstream = await startUpstream();
    await using opened = await openServedGateway(2);
    const { gateway, lines, urls, dataDir } = opened;
    const { control } = gateway;
    const register = async (rolloutId: string, prefix = '', maxTurns = 9): Promise<ModelRoute> =>
      await control.register({
        ...{ rolloutId, upstreamUrl: `${upstream.url}${prefix}/v1`, upstreamKey: null },
        rules: { pins: {}, budgets: { max_turns: maxTurns } },
      });
    const routes = [
      await register('goes-on', '', 2),
      await register('elsewhere'),
      await register('ended', '/held'),
      await register('elsewhere-too'),
    ] as const;
    const [goesOn, elsewhere, ended] = routes;
    const [dying = '', other = ''] = [goesOn, elsewhere].map(({ baseUrl }) => baseUrl);
    assert.deepEqual(
      routes.map(({ baseUrl }) => baseUrl),
      [dying, other, dying, other],
      'each goes to the process that has the fewest',
    );
    assert.equal(await ask(goesOn), 200);
    const held = await openCall(`${dying}/chat/completions`, {
      ...{ headers: bearer(ended), body: '{}' },
    });
    const number = urls.indexOf(dying.replace(/\/v1$/, ''));
    const { pid } = (await workersIn(dataDir))[number]!;
    await until('its call is told, and on disk', async () => {
      const kept = await filesBelow(path.join(dataDir, 'model-calls'));
      return opened.calls.length === 1 && kept.some((text) => text.includes('"end":'));
    });

    process.kill(pid, 'SIGKILL');
    await assert.rejects(held.toArray());
    const taken = await takePort(Number(new URL(dying).port));
    // While nobody serves them:
    await until('it is lost', () => lines.some((line) => line.includes('is lost')));
    assert.deepEqual(await control.abort('ended'), { callsEnded: 0 });
    assert.equal(await control.activity('goes-on'), null);
    assert.equal(await ask(elsewhere), 200);
    assert.equal((await register('new')).baseUrl, other);
    assert.equal(gateway.facts()[number]?.own?.isUp, false);
    await until('another one cannot listen', () =>
      lines.some((line) => line.includes('is lost') && line.includes('EADDRINUSE')),
    );
    taken.close();

    await until('another one serves', () => gateway.facts()[number]?.own?.isUp === true);
    assert.ok((gateway.facts()[number]?.own?.restarts ?? 0) >= 2);
    assert.deepEqual([await ask(goesOn), await ask(goesOn)], [200, 403]);
    assert.equal(await ask(ended), 401);
    const activity = await control.activity('goes-on');
    assert.deepEqual([activity?.spent?.used, activity?.spent?.refused], [2, 1]);
    assert.equal(activity?.capture?.problem?.code, 'GATEWAY_WORKER_LOST');
    await control.revoke('goes-on');
    const file = await control.captured('goes-on');
    assert.ok(file !== null);
    const steps = (await readFile(file, 'utf8')).trim().split('\n').slice(1);
    assert.equal(steps.length, 2, 'the call before its death, and no last step');
    assert.ok(lines.some((line) => line.includes('serves again')));
    assert.ok(!lines.some((line) => routes.some(({ apiKey }) => line.includes(apiKey))));
  });

  it('are killed when they answer nothing for long, and nobody waits for them longer than a moment', async () => {
    const clock = new ManualClock();
    await using upstream = await startUpstream();
    await using opened = await openServedGateway(1, { clock });
    const { gateway, lines, dataDir } = opened;
    const { control } = gateway;
    const request = { rolloutId: 'r', upstreamUrl: `${upstream.url}/v1`, upstreamKey: null };
    const route = await control.register(request);
    const [owner] = await workersIn(dataDir);
    process.kill(owner!.pid, 'SIGSTOP');
    const aborting = control.abort('r');
    const finding = control.captured('r');
    const looking = control.activity('r');
    clock.advance(5_000);
    await assert.rejects(aborting, { code: 'GATEWAY_WORKER_LOST', retryable: true });
    assert.equal(await looking, null);
    const isKilled = (): boolean => lines.some((line) => line.includes('is stuck: it is killed'));
    for (let looks = 1; looks <= 4; looks += 1) {
      await until('it is looked at', () => clock.pauses.includes(5_000));
      clock.advance(5_000);
    }
    assert.equal(isKilled(), false, 'five looks are not enough');
    await until('it is killed', () => {
      clock.advance(5_000);
      return isKilled();
    });
    assert.equal(await finding, null, 'what it kept was waited for, and then looked for');
    await until('another one serves', () => {
      // No further: what begins has a limit too.
      if (clock.pauses.includes(100)) clock.advance(100);
      const own = gateway.facts()[0]?.own;
      return own?.restarts === 1 && own.isUp;
    });
    assert.equal(await ask(route), 401, 'who was told that it ends has no key any more');
    assert.equal(await ask(await control.register(request)), 200);
  });

  it("that are stuck carry out late what is another one's by then, and spoil nothing", async () => {
    const clock = new ManualClock();
    await using upstream = await startUpstream();
    await using opened = await openServedGateway(2, { clock });
    const { gateway, urls, dataDir } = opened;
    const { control } = gateway;
    const [stuck] = await workersIn(dataDir);
    using woken = new DisposableStack();
    woken.defer(() => void process.kill(stuck!.pid, 'SIGCONT'));
    process.kill(stuck!.pid, 'SIGSTOP');
    const registering = control.register({
      ...{ rolloutId: 'r', upstreamUrl: `${upstream.url}/v1`, upstreamKey: null },
    });
    await setImmediate();
    clock.advance(5_000);
    const route = await registering;
    assert.equal(route.baseUrl, `${urls[1]}/v1`, 'one that did not answer is not asked again');
    assert.equal(await ask(route), 200);
    const kept = async () => await filesBelow(path.join(dataDir, 'model-calls')).catch(() => []); // there is no folder yet
    await until('its call is on disk', async () =>
      (await kept()).some((text) => text.includes('"end":')),
    );
    process.kill(stuck!.pid, 'SIGCONT');
    // Of a rollout that is nowhere all are asked: by then it has carried out what came before.
    await control.abort('nobody');
    assert.equal(await ask(route), 200);
    await control.revoke('r');
    const file = await control.captured('r');
    const steps = (await readFile(file ?? '', 'utf8')).trim().split('\n').slice(1);
    assert.equal(steps.length, 5, 'two calls and the last step');
    await control.forget('r');
    assert.deepEqual(await kept(), []);
  });

  describe('that begin', () => {
    let dataDir: string;
    let config: ServeConfig;
    before(async () => {
      dataDir = await mkdtemp(path.join(os.tmpdir(), 'slipway-worker-'));
      const machine = readMachine({ HOME: dataDir, SLIPWAY_STATE_DIR: dataDir }, dataDir);
      const document = { data_dir: dataDir, listen: { data_port: 0 } };
      config = compileServeConfig({ flags: {}, document, file: null }, machine);
    });
    after(() => rm(dataDir, { recursive: true, force: true }));
    const begun = (clock: Clock, note: Promise<undefined>): WorkerProcess => {
      const worker = new WorkerProcess({
        ...{ clock, logger: silentLogger, onCalls: () => undefined },
        ...{ health: () => ({}), note: () => note },
      });
      worker.begin({ ...{ config, worker: 1, port: 0 }, held: [] });
      return worker;
    };

    it('hear their task first, whatever is asked of them before', async () => {
      const noted = Promise.withResolvers<undefined>();
      const worker = begun(systemClock, noted.promise);
      try {
        const asked = worker.ask({ name: 'abort', rolloutId: 'r' }, { ms: null });
        noted.resolve(undefined);
        assert.match(await worker.url, /^http:/);
        assert.deepEqual(await asked, { callsEnded: 0 });
      } finally {
        await worker.end();
      }
    });

    it('are given up when they do not serve in time', async () => {
      const clock = new ManualClock();
      const noted = Promise.withResolvers<undefined>();
      const worker = begun(clock, noted.promise);
      try {
        process.kill(worker.pid!, 'SIGSTOP');
        noted.resolve(undefined);
        await until('it is waited for', () => clock.pauses.includes(makeMs));
        clock.advance(makeMs);
        await assert.rejects(worker.url, { code: 'GATEWAY_WORKER_LOST', message: /serve after/ });
      } finally {
        await worker.end();
      }
    });
  });

  it('leave nothing behind when one of them cannot listen', async () => {
    const taken = createServer().listen(0, '127.0.0.1');
    await once(taken, 'listening');
    const { port } = taken.address() as AddressInfo;
    const asked = openServedGateway(1, { dataPort: port });
    await assert.rejects(asked, { code: 'LISTEN_REFUSED', field: 'listen.data_port' });
    taken.close();
  });

  it('end with their server, also by kill -9', async () => {
    const stateDir = await mkdtemp(path.join(os.tmpdir(), 'slipway-workers-'));
    try {
      const flags = ['--backend', 'null', '--gateway-workers', '1', '--data-port', '0'];
      await using server = await startServeProcess(flags, { stateDir });
      const [owner] = await workersIn(path.join(stateDir, 'server'));
      assert.deepEqual(processOwner('gateway', owner!.pid), owner);
      await server.kill();
      await until('it has ended', () => !isRunning(owner!));
    } finally {
      await rm(stateDir, { recursive: true, force: true });
    }
  });
});
