/** Whether every place says the same of a rollout, and what its row says; pure, so that tampered evidence can show that it is found. */
import { isDeepStrictEqual } from 'node:util';
import type { DiagnosticsRow } from './diagnostics-rows.ts';

type Json = Readonly<Record<string, unknown>>;

export interface DiagnosticsEvidence {
  /** Bodies as they came, by channel; null = none came. */
  readonly callbacks: { readonly completion: string | null; readonly grader: string | null };
  /** `diagnostics` of the line `rollout ended`. */
  readonly log: unknown;
  /** `diagnostics.json`, null = there is none. */
  readonly sidecar: unknown;
  /** `trajectory.json`, null = there is none. */
  readonly trajectory: Json | null;
  /** The outcome on the API. */
  readonly api: Json;
  readonly status: Json;
}

/** Stands in the trajectory of every agent; no callback may hold it. */
export const canary = 'a-word-that-only-the-trajectory-holds';

const keys = ['backend', 'phase', 'harbor_exception_type', 'category', 'timings_sec', 'outcome'];
const timings = [
  ...['setup', 'trial_setup', 'environment_setup', 'agent_setup', 'agent', 'verification'],
  'trial',
];

/** One line per thing that is wrong. */
export function judgeDiagnostics(row: DiagnosticsRow, seen: DiagnosticsEvidence): string[] {
  const object = seen.sidecar as Json | null;
  if (object === null) return ['there is no diagnostics.json'];
  return [
    ...objectProblems(row, object, seen.api),
    ...differs('log', seen.log, object),
    ...trajectoryProblems(row, seen.trajectory, object),
    ...completionProblems(row, seen.callbacks.completion, object),
    ...graderProblems(row, seen.callbacks.grader, object),
    ...rewardProblems(row, seen),
    ...Object.entries(seen.callbacks).flatMap(([channel, text]) =>
      text?.includes(canary) === true ? [`the trajectory is in the ${channel} callback`] : [],
    ),
  ];
}

function objectProblems(row: DiagnosticsRow, object: Json, api: Json): string[] {
  const { stage, cause, trainable, retryable, verdict } = api;
  const times = Object.entries(object['timings_sec'] as Readonly<Record<string, number>>);
  return [
    ...differs('keys', Object.keys(object).sort(), keys.toSorted()),
    ...differs('backend', object['backend'], 'native_harbor'),
    ...differs('phase', object['phase'], row.phase),
    ...differs('exception', object['harbor_exception_type'], row.exception),
    ...differs('outcome', object['outcome'], { stage, cause, trainable, retryable, verdict }),
    ...times.flatMap(([name, value]) =>
      timings.includes(name) && Number.isFinite(value) && value >= 0 ? [] : [`time ${name}`],
    ),
  ];
}

function trajectoryProblems(
  { hasTrajectory }: DiagnosticsRow,
  document: Json | null,
  object: Json,
): string[] {
  if (!hasTrajectory) return document === null ? [] : ['there is a trajectory'];
  if (document === null) return ['there is no trajectory'];
  const osmosis = (document['extra'] as Json)['osmosis'] as Json;
  const isNative = JSON.stringify(document['steps']).includes(canary);
  return [
    ...differs('trajectory', osmosis['result_extra_fields'], object),
    ...(isNative ? [] : ['the trajectory is not the agent’s']),
  ];
}

function completionProblems(row: DiagnosticsRow, text: string | null, object: Json): string[] {
  if (row.completion === 'none') return text === null ? [] : ['there is a completion'];
  if (text === null) return ['there is no completion'];
  const body = JSON.parse(text) as Json;
  const told = body['extra_fields'] as Json;
  const isSuccess = row.completion === 'success';
  const problems = differs('status', body['status'], isSuccess ? 'success' : 'failure');
  if (row.completion === 'all') return [...problems, ...differs('completion', told, object)];
  const { timings_sec: times, ...others } = told;
  const later = object['timings_sec'] as Json;
  const known: Json = isSuccess
    ? { ...object, phase: 'verification', harbor_exception_type: null, category: null }
    : object;
  return [
    ...problems,
    ...('outcome' in others ? ['the completion knows the outcome'] : []),
    ...differs(
      'keys of the completion',
      Object.keys(told),
      keys.filter((key) => key !== 'outcome'),
    ),
    ...Object.entries(others).flatMap(([key, value]) =>
      differs(`completion ${key}`, value, known[key]),
    ),
    ...Object.entries(times as Json).flatMap(([key, value]) =>
      differs(`completion time ${key}`, value, later[key]),
    ),
  ];
}

function graderProblems(row: DiagnosticsRow, text: string | null, object: Json): string[] {
  const isAsked = row.request?.isGraded !== false && row.completion !== 'none';
  if (!isAsked) return text === null ? [] : ['there is a grader callback'];
  if (text === null) return ['there is no grader callback'];
  const body = JSON.parse(text) as Json;
  return [
    ...differs('grader', body['extra_fields'], object),
    ...differs('grader category', body['err_category'], object['category']),
  ];
}

/** A reward that nobody asked for is everywhere but on the wire. */
function rewardProblems(row: DiagnosticsRow, { api, status, trajectory }: DiagnosticsEvidence) {
  const expected = row.exception === null ? 1 : null;
  const extra = trajectory?.['extra'] as { readonly osmosis: Json } | undefined;
  return [
    ...differs('reward of the API', api['reward'] ?? null, expected),
    ...differs('reward of the status', status['reward'] ?? null, expected),
    ...(trajectory === null
      ? []
      : differs('archived reward', extra?.osmosis['reward'] ?? null, expected)),
  ];
}

function differs(what: string, actual: unknown, expected: unknown): string[] {
  if (isDeepStrictEqual(actual, expected)) return [];
  return [`${what}: ${JSON.stringify(actual)}, not ${JSON.stringify(expected)}`];
}
