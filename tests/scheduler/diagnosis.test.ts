import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Diagnosis, DiagnosisKind } from '../../src/wire/rollout/diagnosis.ts';
import { hangKinds } from '../../src/wire/rollout/diagnosis.ts';
import type { ProcessView } from '../../src/wire/rollout/process-view.ts';
import type { RolloutProgress, WaitKind } from '../../src/wire/rollout/progress.ts';
import type { RouteActivity } from '../../src/wire/rollout/route-activity.ts';
import {
  diagnoseRollout,
  diagnoseServer,
  type RolloutFacts,
} from '../../src/scheduler/diagnosis.ts';
import type { AdmissionView, RolloutView } from '../../src/scheduler/rollout-service.ts';

const now = new Date('2026-01-01T12:00:00Z');
const ago = (seconds: number): Date => new Date(now.getTime() - seconds * 1000);
const mib = 2 ** 20;

const admission: AdmissionView = {
  capacity: {
    ...{ max_concurrent: 4, max_queue_depth: 4, in_flight: 1, queue_depth: 0 },
    ...{ available: 7, accepting: true },
  },
  ...{ runningCap: 4, running: 1, queued: 0, delivering: 0, paused: null, isStopping: false },
  tenants: [{ name: 'default', weight: 1, running: 1, queued: 0 }],
};
const full: AdmissionView = {
  ...admission,
  capacity: { ...admission.capacity, in_flight: 8, queue_depth: 4, available: 0 },
  ...{ running: 4, queued: 4 },
};
const paused: AdmissionView = {
  ...admission,
  paused: { reason: '5 failures in a row: DISK', since: ago(9), retryAt: ago(-20) },
};

const rollout: RolloutView['rollout'] = {
  ...{ id: 'r-1', tenant: 'default', request: '{}', digest: 'd', state: 'running', attempt: 1 },
  ...{ acceptedAt: ago(60), startedAt: ago(50), completedAt: null, endedAt: null },
  ...{ hasAgentBegun: true, outcome: null, controllerReport: null, isTombstone: false },
};

function waiting(kind: WaitKind, seconds: number, quietSeconds = seconds): RolloutProgress {
  const owner =
    kind === 'verifier' ? kind : kind === 'agent' ? 'agent terminus-2' : 'environment local';
  return {
    stage: `at ${kind}`,
    waitingOn: { kind, owner, detail: null, since: ago(seconds), deadline: ago(-600) },
    lastProgressAt: ago(quietSeconds),
  };
}

function calls(changes: Partial<RouteActivity>): RouteActivity {
  const none = {
    callsRunning: 0,
    callsDone: 3,
    waiting: null,
    lastCallEndedAt: ago(20),
    ...{ refusal: null, spent: null, capture: null },
  };
  return { ...none, ...changes };
}

function running(since: Date, bytes: number, lastByteAt: Date | null): Partial<RouteActivity> {
  return { callsRunning: 1, waiting: { since, bytes, lastByteAt } };
}

function view(
  name: string,
  waitsFor: ProcessView['waitsFor'],
  more: Partial<ProcessView> = {},
): ProcessView {
  return { pid: 7, parent: 1, name, waitsFor, input: null, ageMs: 20_000, cpuMs: 0, ...more };
}

const idleShells = [view('tmux: server', 'network'), view('bash', 'prompt', { input: 'terminal' })];
const waitingShell = view('bash', 'child');
const agent = waiting('agent', 30);
const delivery: RolloutFacts['delivery'] = {
  ...{ channel: 'grader', receiver: 'http://127.0.0.1:9', attempts: 2, lastError: 'no answer' },
  ...{ since: ago(8), nextAttemptAt: ago(-4) },
};

interface Given {
  readonly state?: RolloutView['rollout']['state'];
  readonly progress?: RolloutProgress | null;
  readonly calls?: RouteActivity | null;
  readonly admission?: AdmissionView;
  readonly disk?: RolloutFacts['disk'];
  readonly delivery?: RolloutFacts['delivery'];
  readonly processes?: readonly ProcessView[];
  readonly upstream?: RolloutFacts['upstream'];
}

function diagnosed(given: Given): Diagnosis {
  return diagnoseRollout({
    view: {
      rollout: { ...rollout, state: given.state ?? 'running' },
      progress: given.progress ?? null,
      calls: given.calls ?? null,
      ...{ deliveries: [], receipts: [] },
    },
    admission: given.admission ?? admission,
    disk: given.disk ?? { freeBytes: 900 * mib, totalBytes: 1000 * mib, floorBytes: 100 * mib },
    delivery: given.delivery ?? null,
    upstream: given.upstream ?? null,
    probe:
      given.processes === undefined
        ? null
        : { sandboxes: [{ name: 's', processes: given.processes }] },
    now,
  });
}

const cases: readonly (readonly [string, Given, DiagnosisKind, string | null])[] = [
  [
    'a call without a byte for long',
    { progress: agent, calls: calls(running(ago(5), 0, null)) },
    'engine-silent',
    'engine',
  ],
  [
    'no byte, and nothing else is answered',
    {
      progress: agent,
      calls: calls(running(ago(5), 0, null)),
      upstream: { status: null, ms: 1500 },
    },
    'engine-silent',
    'engine',
  ],
  [
    'no byte yet, and other requests are answered',
    { progress: agent, calls: calls(running(ago(50), 0, null)), upstream: { status: 200, ms: 3 } },
    'engine-slow',
    'engine',
  ],
  [
    'no byte for minutes, though other requests are answered',
    { progress: agent, calls: calls(running(ago(150), 0, null)), upstream: { status: 404, ms: 3 } },
    'engine-silent',
    'engine',
  ],
  [
    'a call without a byte for a moment',
    { progress: agent, calls: calls(running(ago(1), 0, null)) },
    'moving',
    'engine',
  ],
  [
    'an answer that stopped in its middle',
    { progress: agent, calls: calls(running(ago(20), 9000, ago(6))) },
    'engine-silent',
    'engine',
  ],
  [
    'an answer in drops',
    { progress: agent, calls: calls(running(ago(20), 3000, ago(1))) },
    'engine-slow',
    'engine',
  ],
  [
    'an answer in drops, with pauses as long as its usual ones',
    { progress: agent, calls: calls(running(ago(30), 1500, ago(4))) },
    'engine-slow',
    'engine',
  ],
  [
    'an answer that comes as answers do',
    { progress: agent, calls: calls(running(ago(20), 60_000, ago(0.1))) },
    'moving',
    'engine',
  ],
  [
    'refused calls',
    {
      progress: agent,
      calls: calls({ refusal: { status: 503, message: 'busy', at: ago(1), count: 4 } }),
    },
    'upstream-refusing',
    'engine',
  ],
  [
    'refused calls, the next try under way',
    {
      progress: agent,
      calls: calls({
        ...running(ago(1), 0, null),
        refusal: { status: null, message: '', at: ago(2), count: 2 },
      }),
    },
    'upstream-refusing',
    'engine',
  ],
  [
    'calls refused for their key',
    {
      progress: agent,
      calls: calls({ refusal: { status: 401, message: 'key', at: ago(1), count: 1 } }),
    },
    'upstream-refusing',
    'controller',
  ],
  [
    'a sandbox that is not made',
    { progress: waiting('sandbox-create', 6) },
    'sandbox-create-stuck',
    'environment local',
  ],
  [
    'a sandbox that is being made',
    { progress: waiting('sandbox-create', 1) },
    'moving',
    'environment local',
  ],
  [
    'a build that says nothing',
    { progress: waiting('image-build', 90, 5) },
    'build-stuck',
    'environment local',
  ],
  [
    'a build that says something',
    { progress: waiting('image-build', 90, 1) },
    'moving',
    'environment local',
  ],
  [
    'a verifier that sleeps',
    {
      state: 'grading',
      progress: waiting('verifier', 9),
      processes: [waitingShell, view('sleep', 'timer')],
    },
    'verifier-hung',
    'verifier',
  ],
  [
    'a verifier that works',
    {
      state: 'grading',
      progress: waiting('verifier', 9),
      processes: [waitingShell, view('pytest', 'none')],
    },
    'moving',
    'verifier',
  ],
  [
    'a program of the agent that sleeps',
    {
      progress: agent,
      calls: calls({}),
      processes: [...idleShells, waitingShell, view('sleep', 'timer')],
    },
    'agent-sleeping',
    'agent terminus-2',
  ],
  [
    'a program of the agent that works',
    {
      progress: agent,
      calls: calls({}),
      processes: [...idleShells, waitingShell, view('gcc', 'none')],
    },
    'moving',
    'agent terminus-2',
  ],
  [
    'a program that has slept for a moment',
    {
      progress: agent,
      calls: calls({}),
      processes: [waitingShell, view('sleep', 'timer', { ageMs: 500 })],
    },
    'moving',
    'agent terminus-2',
  ],
  [
    'a program that asks somebody',
    {
      progress: agent,
      calls: calls({}),
      processes: [...idleShells, view('python3', 'input', { input: 'terminal' })],
    },
    'agent-waiting-for-input',
    'agent terminus-2',
  ],
  [
    'a pipe whose writer sleeps',
    {
      progress: agent,
      processes: [view('cat', 'input', { input: 'pipe' }), view('sleep', 'timer')],
    },
    'agent-sleeping',
    'agent terminus-2',
  ],
  [
    'a pipe that has no writer',
    { progress: agent, processes: [view('bash', 'input', { input: 'pipe' })] },
    'agent-waiting-for-input',
    'agent terminus-2',
  ],
  [
    'an agent that does nothing at all',
    { progress: agent, calls: calls({}), processes: idleShells },
    'agent-sleeping',
    'agent terminus-2',
  ],
  [
    'an agent between two things',
    { progress: agent, calls: calls({ lastCallEndedAt: ago(1) }), processes: idleShells },
    'moving',
    'agent terminus-2',
  ],
  [
    'a workflow that neither calls nor ends',
    { progress: waiting('workflow', 9) },
    'agent-sleeping',
    'environment local',
  ],
  ['no place for long', { state: 'queued', admission: full }, 'admission-starved', 'scheduler'],
  ['a pause', { state: 'queued', admission: paused }, 'paused', 'operator'],
  [
    'a pause does not hold up what runs',
    { progress: waiting('verifier', 1), admission: paused },
    'moving',
    'verifier',
  ],
  [
    'a callback that is not taken',
    { state: 'success', delivery },
    'callback-blocked',
    'controller',
  ],
  [
    'a callback on its first way',
    { state: 'success', delivery: { ...delivery, lastError: null, since: ago(1) } },
    'moving',
    'controller',
  ],
  ['an end without callbacks due', { state: 'failure' }, 'ended', null],
  ['a cancelled one has none', { state: 'cancelled', delivery }, 'ended', null],
  ['a state that cannot be written', { progress: waiting('disk', 2) }, 'disk-full', 'operator'],
  [
    'a stage that nobody can look into',
    { progress: waiting('collect', 40) },
    'unclear',
    'environment local',
  ],
];

describe('why a rollout is not moving', () => {
  for (const [title, given, kind, owner] of cases)
    it(`${title}: ${kind}`, () => {
      const found = diagnosed(given);
      assert.deepEqual(
        { kind: found.kind, owner: found.owner },
        { kind, owner },
        JSON.stringify(found),
      );
      if (kind === 'ended') return;
      assert.ok(found.waitingOn !== null && found.waitingOn !== '');
      assert.ok(found.since !== null && found.since <= now);
      assert.ok(found.evidence.length > 0);
      assert.equal(found.remedy === null, kind === 'moving');
    });

  it('every kind of hang has a row', () => {
    const rows = new Set<DiagnosisKind>(cases.map(([, , kind]) => kind));
    assert.deepEqual(
      hangKinds.filter((kind) => !rows.has(kind)),
      [],
    );
  });

  it('says how full the disk is and who is served before', () => {
    assert.match(
      diagnosed({ state: 'queued', admission: full }).evidence.join(),
      /4 of 4 places are taken, 4 rollouts wait/,
    );
    const found = diagnosed({
      progress: waiting('disk', 2),
      disk: { freeBytes: 0, totalBytes: 50 * mib, floorBytes: mib },
    });
    assert.match(found.evidence.join(), /0 of 50 MiB are free/);
  });
});

describe('what holds up every rollout', () => {
  const disk = { freeBytes: 0, totalBytes: 50 * mib, floorBytes: mib };
  const kinds = (given: Partial<Parameters<typeof diagnoseServer>[0]>): readonly DiagnosisKind[] =>
    diagnoseServer({ admission, disk: null, now, ...given }).map(({ kind }) => kind);

  for (const [title, given, expected] of [
    ['nothing', {}, []],
    ['a full disk', { disk }, ['disk-full']],
    ['a pause', { admission: paused }, ['paused']],
    ['no reservation left', { admission: full }, ['admission-starved']],
    ['several at once', { disk, admission: paused }, ['disk-full', 'paused']],
  ] as const)
    it(title, () => {
      assert.deepEqual(kinds(given), expected);
    });
});
