import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  composeModel,
  withOverlay,
  type SandboxOverlay,
} from '../../../../src/environments/docker/compose/compose-model.ts';

const overlay: SandboxOverlay = {
  labels: { 'slipway.name': 'box', 'slipway.trial': 'a$b' },
  images: { main: 'slipway-build:1' },
  env: { MINE: 'costs $5', OVER: 'ours' },
  sharedEnv: { http_proxy: 'http://10.0.0.1:1' },
  layers: [],
  workdir: '/app',
  limits: { cpus: 1.5, memoryMb: 256, storageMb: null, pids: 99 },
  network: null,
  isSecluded: false,
};

const model = composeModel.parse({
  name: 'box',
  services: {
    main: {
      image: 'placeholder',
      build: { context: '/x' },
      container_name: 'fixed',
      ports: [{ target: 80, published: '8080' }],
      environment: { OVER: 'theirs', KEPT: 'a$$b' },
      depends_on: { db: { condition: 'service_healthy' } },
    },
    db: {
      image: 'postgres',
      labels: { own: 'label' },
      networks: { back: { aliases: ['database'] } },
      healthcheck: { test: ['CMD', 'true'] },
    },
    logs: { image: 'logs', network_mode: 'service:db' },
  },
  networks: { back: { name: 'box_back' }, shared: { external: true, name: 'shared' } },
  volumes: { pg: { name: 'box_pg' } },
});

type Service = Record<string, unknown>;
function overlaid(changes: Partial<SandboxOverlay> = {}): {
  services: Record<string, Service>;
  networks: Record<string, Service>;
  volumes: Record<string, Service>;
} {
  const document = withOverlay(model, { ...overlay, ...changes });
  return JSON.parse(JSON.stringify(document)) as ReturnType<typeof overlaid>;
}

describe('compose overlay', () => {
  test('main alone sees the layers, beside its own volumes', () => {
    const { main, db } = overlaid({ layers: [{ hostDir: '/a$b', at: '/opt/x' }] }).services;
    assert.deepEqual(main!['volumes'], [
      { type: 'bind', source: '/a$$b', target: '/opt/x', read_only: true },
    ]);
    assert.equal(db!['volumes'], undefined);
  });

  test('main gets our image, limits, init and folder, and loses what would collide', () => {
    const { main } = overlaid().services;
    assert.deepEqual(main, {
      image: 'slipway-build:1',
      pull_policy: 'never',
      labels: { 'slipway.name': 'box', 'slipway.trial': 'a$$b' },
      environment: {
        http_proxy: 'http://10.0.0.1:1',
        OVER: 'ours',
        KEPT: 'a$$b',
        MINE: 'costs $$5',
      },
      depends_on: { db: { condition: 'service_healthy' } },
      init: true,
      working_dir: '/app',
      cpus: 1.5,
      mem_limit: '256m',
      memswap_limit: '256m',
      pids_limit: 99,
    });
  });

  test('every service, network and volume carries our labels, external ones do not', () => {
    const { services, networks, volumes } = overlaid();
    const ours = { 'slipway.name': 'box', 'slipway.trial': 'a$$b' };
    assert.deepEqual(services['db']!['labels'], { own: 'label', ...ours });
    assert.deepEqual(services['logs']!['labels'], ours);
    assert.deepEqual(networks['back']!['labels'], ours);
    assert.deepEqual(networks['shared'], { external: true, name: 'shared' });
    assert.deepEqual(volumes['pg']!['labels'], ours);
  });

  test('on its own network every service is there alone, under the names it had', () => {
    const { services, networks } = overlaid({ network: 'box', isSecluded: true });
    assert.deepEqual(networks, { default: { name: 'box', external: true } });
    assert.deepEqual(services['db']!['networks'], { default: { aliases: ['db', 'database'] } });
    assert.deepEqual(services['main']!['networks'], { default: { aliases: ['main'] } });
    assert.deepEqual(services['db']!['dns'], ['240.0.0.1']);
    assert.equal(services['logs']!['network_mode'], 'service:db');
    assert.equal(services['logs']!['networks'], undefined);
  });

  test('a service on the network of the host is taken off it when the sandbox is closed', () => {
    const hosted = composeModel.parse({
      services: { main: { image: 'x' }, side: { image: 'y', network_mode: 'host' } },
    });
    const document = withOverlay(hosted, { ...overlay, network: 'box' });
    const { side } = (JSON.parse(JSON.stringify(document)) as { services: Record<string, Service> })
      .services;
    assert.equal(side!['network_mode'], undefined);
    assert.deepEqual(side!['networks'], { default: { aliases: ['side'] } });
  });
});
