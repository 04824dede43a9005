import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { describe, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { isRolloutError } from '../../../src/core/errors.ts';
import { never } from '../../../src/core/linked-abort.ts';
import {
  decodeLabels,
  encodeLabels,
  skyName,
} from '../../../src/environments/skypilot/sky-names.ts';
import { environmentSpec } from '../../fakes/environment/environment-spec.ts';
import { SkyBench } from './sky-bench.ts';

const dockerfile = {
  kind: 'dockerfile',
  contextDir: '/tasks/one/environment',
  contextHash: 'a'.repeat(64),
} as const;

describe('names and labels', () => {
  test('a name is one of DNS, at most 53 characters long, and long names stay apart', () => {
    const long = `trial-${'x'.repeat(50)}`;
    const names = ['t', long, `${long}2`].map(skyName);
    for (const name of names) assert.match(name, /^slipway-[a-z0-9-]{0,44}[a-z0-9]$/);
    assert.equal(new Set(names).size, 3);
    assert.equal(skyName('trial-1'), 'slipway-trial-1');
  });

  test('labels come back as they were, and a stranger’s variable is none', () => {
    const { name, labels } = environmentSpec('trial-1');
    assert.deepEqual(decodeLabels(encodeLabels({ name, labels })), { name, labels });
    assert.equal(decodeLabels('of somebody else'), null);
  });
});

describe('the sandbox SDK behind the bridge', () => {
  test('without the SDK the preflight says what to install', async () => {
    await using bench = await SkyBench.open();
    const provider = bench.provider({}, { PYTHONPATH: '/nowhere' });
    await assert.rejects(provider.preflight(never), (error) => {
      assert.ok(isRolloutError(error, 'ENVIRONMENT_UNAVAILABLE'));
      assert.match(error.describe(), /no sandbox SDK.*SkyPilot Platform/s);
      return true;
    });
  });

  test('without a Python the preflight names the option', async () => {
    await using bench = await SkyBench.open();
    const preflight = bench.provider({ python: 'no-such-python' }).preflight(never);
    await assert.rejects(preflight, {
      code: 'ENVIRONMENT_UNAVAILABLE',
      field: 'environment.kwargs.python',
    });
  });

  test('a login that is not known is told as one', async () => {
    await using bench = await SkyBench.open();
    const endpoint = bench.server.variables['SKYPILOT_API_SERVER_ENDPOINT'] ?? '';
    const wrong = endpoint.replace(/sky:[^@]+@/, 'sky:wrong@');
    const provider = bench.provider({}, { SKYPILOT_API_SERVER_ENDPOINT: wrong });
    await assert.rejects(provider.preflight(never), (error) => {
      assert.ok(isRolloutError(error, 'ENVIRONMENT_UNAVAILABLE'));
      assert.equal(error.retryable, false);
      assert.match(error.remedy ?? '', /sky api login/);
      return true;
    });
  });

  test('a bridge that dies is started again, and finds the sandboxes', async () => {
    await using bench = await SkyBench.open();
    const provider = bench.provider();
    const environment = await bench.start(provider, 'one');
    process.kill(provider.bridgePid ?? 0, 'SIGKILL');
    assert.equal((await environment.exec({ command: 'true' }, never)).exitCode, 0);
    await environment.destroy();
    assert.deepEqual(bench.server.platform.list(), []);
  });

  test('the secrets of this process are not in the variables of the bridge', async () => {
    await using bench = await SkyBench.open();
    const provider = bench.provider({}, { SLIPWAY_KEY: 'secret-of-ours' });
    await provider.preflight(never);
    const seen = await readFile(`/proc/${provider.bridgePid}/environ`, 'utf8');
    assert.ok(seen.includes('SKYPILOT_API_SERVER_ENDPOINT'));
    assert.ok(!seen.includes('secret-of-ours'));
  });
});

describe('creation', () => {
  test('the service is told image, shape, place, secrets, network and lifetime', async () => {
    await using bench = await SkyBench.open({ secrets: { HF_TOKEN: 'hf' } });
    const provider = bench.provider({
      contextName: 'gpu-cluster',
      namespace: 'rl',
      registry: 'registry.example/team',
      secrets: ['HF_TOKEN'],
    });
    await bench.start(provider, 'one', {
      env: { OWN: 'value' },
      limits: { cpus: 2, memoryMb: 3072, storageMb: null, pids: null },
      network: { mode: 'no-network' },
      labels: {
        ...environmentSpec('one').labels,
        expiresAt: new Date(Date.now() + 600_000).toISOString(),
      },
    });
    const [asked] = bench.server.platform.asked;
    assert.ok(asked !== undefined);
    const { env, timeout, ...rest } = asked;
    assert.deepEqual(rest, {
      name: 'slipway-one',
      image: 'debian:bookworm-slim',
      pool: null,
      cpus: 2,
      memory_gb: 3,
      registry: 'registry.example/team',
      context_name: 'gpu-cluster',
      namespace: 'rl',
      secrets: ['HF_TOKEN'],
      block_network: true,
    });
    assert.equal(env?.['OWN'], 'value');
    assert.ok((timeout ?? 0) > 590 && (timeout ?? 0) <= 600, String(timeout));
  });

  test('a pool gives image and shape, and the service refuses one that it does not have', async () => {
    await using bench = await SkyBench.open({ pools: { warm: { image: 'debian:bookworm-slim' } } });
    const limits = { cpus: 2, memoryMb: 3072, storageMb: null, pids: null };
    await bench.start(bench.provider({ pool: 'warm' }), 'one', { limits });
    const [asked] = bench.server.platform.asked;
    assert.deepEqual([asked?.pool, asked?.image, asked?.cpus], ['warm', null, null]);
    assert.equal(bench.provider({ pool: 'warm' }).capabilities.cpuLimit, false);
    await assert.rejects(bench.start(bench.provider({ pool: 'cold' }), 'two'), /no pool cold/);
  });

  test('a sandbox whose creation was never answered is found by its name and used', async () => {
    await using bench = await SkyBench.open();
    const { platform } = bench.server;
    platform.host.faults.plant('lost-answer');
    const environment = await bench.start(bench.provider(), 'one');
    assert.equal(platform.host.meter.created, 1);
    await environment.destroy();
    assert.deepEqual(platform.list(), []);
  });

  test('a creation that never reached the service is asked for again, after admission', async () => {
    await using bench = await SkyBench.open();
    bench.server.plant(/^POST \/sandboxes$/, 503);
    const environment = bench.provider().environment(environmentSpec('one'));
    let admissions = 0;
    await environment.start({
      signal: never,
      admitCreate: () => {
        admissions += 1;
        return Promise.resolve();
      },
    });
    assert.equal(admissions, 2);
    assert.equal(bench.server.platform.host.meter.created, 1);
  });

  test('a throttle is told with the time after which a creation is taken', async () => {
    await using bench = await SkyBench.open({ limits: { createsPerSecond: 1 } });
    const provider = bench.provider();
    await bench.start(provider, 'one');
    await assert.rejects(bench.start(provider, 'two'), (error) => {
      assert.ok(isRolloutError(error, 'ENVIRONMENT_THROTTLED'), String(error));
      assert.ok(error.retryAfterMs !== null && error.retryAfterMs <= 1000);
      return error.retryable;
    });
    assert.equal(bench.server.platform.host.meter.refused.rate, 1);
  });

  test('a sandbox that failed is one of the service, and is gone after destroy', async () => {
    await using bench = await SkyBench.open();
    const { platform } = bench.server;
    platform.host.faults.plant('failed-create');
    const environment = bench.provider().environment(environmentSpec('one'));
    await assert.rejects(environment.start({ signal: never }), {
      code: 'ENVIRONMENT_START_FAILED',
    });
    await environment.destroy();
    assert.deepEqual(platform.list(), []);
  });

  test('a start that is given up leaves nothing, though its creation goes on', async () => {
    await using bench = await SkyBench.open({ limits: { createMs: 400 } });
    const environment = bench.provider().environment(environmentSpec('one'));
    const reason = new Error('enough');
    const controller = new AbortController();
    const starting = environment.start({ signal: controller.signal });
    while (bench.server.platform.list().length === 0) await delay(10);
    controller.abort(reason);
    await assert.rejects(starting, reason);
    await environment.destroy();
    assert.deepEqual(bench.server.platform.list(), []);
  });

  test('a Dockerfile without a registry is refused by name before anything is created', async () => {
    await using bench = await SkyBench.open();
    await assert.rejects(bench.start(bench.provider(), 'one', { image: dockerfile }), {
      code: 'CONFIG_INVALID',
      field: 'environment.kwargs.registry',
    });
    assert.deepEqual(bench.server.platform.asked, []);
  });
});

describe('finding and ending', () => {
  test('another process lists a sandbox by its labels, ends it by its name, and leaves strangers alone', async () => {
    await using bench = await SkyBench.open();
    await bench.start(bench.provider(), 'one');
    const { platform } = bench.server;
    await platform.create({
      ...{ name: 'of-somebody-else', image: 'debian:bookworm-slim', pool: null, cpus: null },
      ...{ memory_gb: null, registry: null, context_name: null, namespace: null, env: null },
      ...{ secrets: null, block_network: false, timeout: null },
    });
    const other = bench.provider();
    const found = await other.list(never);
    assert.deepEqual(
      found.map(({ name }) => name),
      ['one'],
    );
    await other.destroyByName('one');
    await other.destroyByName('one');
    assert.equal(platform.list().length, 1);
  });

  test('a service that is busy for a moment costs a wait and nothing else', async () => {
    await using bench = await SkyBench.open();
    const environment = await bench.start(bench.provider(), 'one');
    bench.server.plant(/^POST .*\/execs$/, 502);
    bench.server.plant(/^DELETE /, 503);
    assert.equal((await environment.exec({ command: 'true' }, never)).exitCode, 0);
    await environment.destroy();
    assert.deepEqual(bench.server.platform.list(), []);
  });

  test('a service that refuses to end a sandbox is told with what is left', async () => {
    await using bench = await SkyBench.open();
    const environment = await bench.start(bench.provider(), 'one');
    bench.server.plant(/^DELETE /, 403);
    await assert.rejects(environment.destroy(), { code: 'ENVIRONMENT_DESTROY_FAILED' });
    await environment.destroy();
    assert.deepEqual(bench.server.platform.list(), []);
  });
});
