import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { collectorBegin } from '../../src/collector/group-source.ts';
import { systemClock } from '../../src/core/clock.ts';
import { silentLogger } from '../../src/core/logger.ts';
import { Collections } from '../../src/server/collections/collections.ts';
import { commonAnswers, operations, type Operation } from '../../src/wire/api/operations.ts';
import { openApiDocument } from '../../src/wire/api/openapi.ts';
import { rolloutBody, Serving } from './serving.ts';

interface OpenApi {
  readonly paths: Readonly<
    Record<
      string,
      Readonly<
        Record<
          string,
          {
            readonly operationId: string;
            readonly parameters: readonly { readonly name: string; readonly in: string }[];
            readonly responses: Readonly<Record<string, { readonly description: string }>>;
          }
        >
      >
    >
  >;
  readonly components: { readonly schemas: Readonly<Record<string, object>> };
}

const document = openApiDocument('1.2.3') as unknown as OpenApi;
const all = Object.values<Operation>(operations);

type Check = (operation: Operation, url: string, payload?: unknown) => Promise<string>;

/** Room for one, which collects nothing until it is stopped. */
function oneIdleCollection(): Collections {
  return new Collections({
    ...{ clock: systemClock, logger: silentLogger, max: 1 },
    open: async () => ({
      driver: {
        collect: (signal) =>
          new Promise((_resolve, reject) =>
            signal.addEventListener('abort', () => reject(signal.reason as Error)),
          ),
        stop: async () => null,
      },
      ...{ pause: async () => undefined, resume: () => undefined, weightsChanged: () => undefined },
      ...{ rows: 1, skippedLines: 0, position: () => collectorBegin, close: async () => undefined },
    }),
  });
}

async function checkCollections(check: Check): Promise<void> {
  const o = operations;
  const all = '/api/v1/collections';
  await check(o.createCollection, all, { dataset: {} });
  const body = { dataset: { rows: [{ prompt: 'x' }] } };
  const { id } = JSON.parse(await check(o.createCollection, all, body)) as { id: string };
  await check(o.createCollection, all, body);
  await check(o.listCollections, all);
  const changes = [
    ...[
      [o.acknowledgeGroups, 'ack', { through: 0 }] as const,
      [o.pauseCollection, 'pause', {}] as const,
    ],
    ...[
      [o.resumeCollection, 'resume', {}] as const,
      [o.setWeightVersion, 'weight-version', { version: 1 }] as const,
    ],
    [o.stopCollection, 'stop', {}] as const,
  ];
  for (const at of [`${all}/${id}`, `${all}/nobody`]) {
    await check(o.inspectCollection, at);
    if (at.endsWith('nobody')) await check(o.collectedGroups, `${at}/groups`);
    await check(o.collectedGroups, `${at.replace('nobody', id)}/groups?after=x`);
    for (const [operation, what, payload] of changes)
      await check(operation, `${at}/${what}`, payload);
  }
  await check(o.acknowledgeGroups, `${all}/${id}/ack`, { through: 9 });
  await check(o.setWeightVersion, `${all}/${id}/weight-version`, { version: 'x' });
  for (const [operation, what, payload] of changes.slice(1))
    await check(operation, `${all}/${id}/${what}`, payload);
}

describe('the OpenAPI document', () => {
  it('refers only to what it holds, and names every operation and parameter once', () => {
    const text = JSON.stringify(document);
    for (const [, name = ''] of text.matchAll(/"\$ref":"([^"]*)"/g)) {
      const known = /^#\/components\/schemas\/(\w+)$/.exec(name)?.[1] ?? '';
      assert.ok(known in document.components.schemas, name);
    }
    const ids = Object.values(document.paths).flatMap((path) =>
      Object.values(path).map(({ operationId }) => operationId),
    );
    assert.deepEqual(ids.toSorted(), all.map(({ id }) => id).toSorted());
    for (const [path, methods] of Object.entries(document.paths))
      for (const { parameters, responses } of Object.values(methods)) {
        const inPath = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name);
        const named = parameters.filter((parameter) => parameter.in === 'path');
        assert.deepEqual(
          named.map(({ name }) => name),
          inPath,
        );
        for (const { description } of Object.values(responses)) assert.notEqual(description, '');
        const keys = parameters.map((parameter) => `${parameter.in} ${parameter.name}`);
        assert.equal(new Set(keys).size, keys.length);
      }
  });

  it('holds every route of the server, and no other', async () => {
    await using serving = new Serving();
    await serving.app.ready();
    const served = serving.app
      .printRoutes({ commonPrefix: false })
      .split('\n')
      .flatMap((line) => {
        const [, methods = ''] = /\(([A-Z, ]+)\)$/.exec(line) ?? [];
        return methods.split(', ').filter((method) => method !== '' && method !== 'HEAD');
      });
    assert.equal(served.length, all.length);
    for (const { method, path } of all) {
      const url = path.replace('{*}', '*').replaceAll(/\{(\w+)\}/g, ':$1');
      assert.ok(serving.app.hasRoute({ method, url }), url);
    }
  });

  it('describes the answers that are given', async () => {
    await using serving = new Serving({
      doctor: {
        diagnoseServer: async () => [
          {
            ...{ rolloutId: null, kind: 'disk-full', owner: 'operator', waitingOn: 'space' },
            ...{ since: new Date(0), deadline: null, evidence: ['x'], remedy: null },
          },
        ],
        diagnose: async () => null,
      },
      instanceId: 'i',
      collections: oneIdleCollection(),
      files: {
        list: async () => [{ path: 'a', sizeBytes: 1, sha256: 'f', modifiedAt: new Date(0) }],
        locate: async () => null,
      },
    });
    const seen = new Set<string>();
    const check = async (operation: Operation, url: string, payload?: unknown) => {
      const got =
        payload === undefined
          ? await serving.ask({ method: operation.method, url })
          : await serving.post(url, payload);
      const answer = commonAnswers(operation)[got.statusCode];
      assert.ok(answer !== undefined, `${operation.id} answers ${got.statusCode}`);
      seen.add(`${operation.id} ${got.statusCode}`);
      if (answer.schema === undefined) return got.body;
      // A key that the schema does not have would be missing here.
      assert.deepEqual(answer.schema.parse(got.json()), got.json());
      return got.body;
    };
    const o = operations;
    await check(o.submitRollout, '/rollout', rolloutBody('r1'));
    await check(o.submitRollout, '/rollout', rolloutBody('r1', { label: 'x' }));
    await check(o.submitRollout, '/rollout', {});
    serving.service.refusal = { kind: 'refused', reason: 'full', detail: '', retryAfterS: 1 };
    await check(o.submitRollout, '/rollout', rolloutBody());
    serving.service.refusal = { kind: 'stopping', retryAfterS: 1 };
    await check(o.submitRollout, '/rollout', rolloutBody());
    serving.service.refusal = null;
    await check(o.health, '/health');
    await check(o.rolloutStatus, '/rollout/r1/status');
    await check(o.rolloutStatus, '/rollout/nobody/status');
    await check(o.metrics, '/metrics');
    await check(o.listRollouts, '/api/v1/rollouts');
    await check(o.listRollouts, '/api/v1/rollouts?limit=x');
    await check(o.cancelWithReceipts, '/api/v1/rollouts/cancel', { ids: ['r2'] });
    await check(o.cancelWithReceipts, '/api/v1/rollouts/cancel', { ids: 3 });
    await check(o.cancelRollouts, '/rollout/cancel', { ids: ['r1'] });
    await check(o.cancelRollouts, '/rollout/cancel', {});
    await check(o.inspectRollout, '/api/v1/rollouts/r1');
    await check(o.inspectRollout, '/api/v1/rollouts/r2');
    await check(o.inspectRollout, '/api/v1/rollouts/nobody');
    await check(o.listFiles, '/api/v1/rollouts/r1/files');
    await check(o.listFiles, '/api/v1/rollouts/nobody/files');
    await check(o.downloadFile, '/api/v1/rollouts/r1/files/a');
    await check(o.rolloutSamples, '/api/v1/rollouts/r1/samples');
    await check(o.rolloutSamples, '/api/v1/rollouts/nobody/samples');
    await check(o.rolloutSamples, '/api/v1/rollouts/r1/samples?format=xml');
    await check(o.events, '/api/v1/events?after=99');
    await check(o.admission, '/api/v1/admission');
    await check(o.deadCallbacks, '/api/v1/callbacks/dead');
    await check(o.replayCallback, '/api/v1/callbacks/dead/x/replay');
    await check(o.doctor, '/api/v1/doctor');
    await check(o.doctorOfRollout, '/api/v1/doctor/x');
    await check(o.openApi, '/api/v1/openapi.json');
    await check(o.runTrial, '/run', { base_url: 'http://h/v1', model: 'm', row: 1 });
    await check(o.runTrial, '/run', {});
    await check(o.flushTrials, '/flush', { session_server_instance_id: 'i' });
    await check(o.flushTrials, '/flush', {});
    await check(o.flushTrials, '/flush', { session_server_id: 1 });
    await check(o.flushAllTrials, '/flush_all', { prune: true });
    await check(o.flushAllTrials, '/flush_all', { prune: 'perhaps' });
    await check(o.clients, '/clients');
    await checkCollections(check);
    // What is left needs a file, a stream, a wrong key or a defect, which have tests of their own.
    const untried = all.flatMap((operation) =>
      Object.keys(commonAnswers(operation))
        .map((status) => `${operation.id} ${status}`)
        .filter((name) => !seen.has(name) && !/ (401|403|413|500|503)$/.test(name)),
    );
    assert.deepEqual(untried, [
      'runTrial 429',
      'downloadFile 200',
      'downloadFile 206',
      'downloadFile 304',
      'downloadFile 416',
      'rolloutSamples 200',
      'events 422',
      'events 429',
      'deadCallbacks 422',
      'replayCallback 200',
      'doctorOfRollout 200',
      'createCollection 400',
      'collectedGroups 200',
      'collectedGroups 429',
    ]);
  });
});
