/** Evidence as broken servers would leave it: the judge must find each. */
import type { DiagnosticsRow } from './diagnostics-rows.ts';
import { canary, type DiagnosticsEvidence } from './judge-diagnostics.ts';
import type { DiagnosticsReport } from './run-diagnostics.ts';

export type Tampered = readonly [what: string, row: DiagnosticsRow, seen: DiagnosticsEvidence];
type Json = Readonly<Record<string, unknown>>;

export function tamperedDiagnostics(reports: readonly DiagnosticsReport[]): readonly Tampered[] {
  const of = (name: string): DiagnosticsReport => {
    const report = reports.find(({ row }) => row.name === name);
    if (report === undefined) throw new TypeError(`there is no row ${name}`);
    return report;
  };
  const tamper = (
    what: string,
    name: string,
    change: (seen: DiagnosticsEvidence) => Partial<DiagnosticsEvidence>,
  ): Tampered => {
    const { row, evidence } = of(name);
    return [what, row, { ...evidence, ...change(evidence) }];
  };
  const late = 'agent-late';
  const alone = 'environment-start';
  const inGrader = (seen: DiagnosticsEvidence, change: (text: string) => string) => ({
    callbacks: { ...seen.callbacks, grader: change(seen.callbacks.grader ?? '') },
  });
  const inCompletion = (seen: DiagnosticsEvidence, change: (text: string) => string) => ({
    callbacks: { ...seen.callbacks, completion: change(seen.callbacks.completion ?? '') },
  });
  const sidecar = (seen: DiagnosticsEvidence): Json => seen.sidecar as Json;
  return [
    tamper('another phase in the grader callback', late, (seen) =>
      inGrader(seen, (text) => text.replace('"phase":"agent"', '"phase":"verification"')),
    ),
    tamper('another phase in the completion', late, (seen) =>
      inCompletion(seen, (text) => text.replace('"phase":"agent"', '"phase":"verification"')),
    ),
    tamper('another time in the completion', late, (seen) =>
      inCompletion(seen, (text) => text.replace(/"agent":[\d.]+/, '"agent":0.25')),
    ),
    tamper('no line in the log', late, () => ({ log: undefined })),
    tamper('another category in the log', late, (seen) => ({
      log: { ...sidecar(seen), category: null },
    })),
    tamper('no sidecar', late, () => ({ sidecar: null })),
    tamper('a sidecar without times', late, (seen) => {
      const object = { ...sidecar(seen), timings_sec: { agent: -1 } };
      return { sidecar: object, log: object };
    }),
    tamper('no trajectory', late, () => ({ trajectory: null })),
    tamper('a trajectory without diagnostics', late, (seen) => ({
      trajectory: { ...seen.trajectory, extra: { osmosis: {} } },
    })),
    tamper('a trajectory without a sample', alone, () => ({ trajectory: {} })),
    tamper('the trajectory in a callback', late, (seen) =>
      inGrader(seen, (text) => text.replace('"a label"', `"${canary}"`)),
    ),
    tamper('a grader callback nobody asked for', 'well-ungraded', (seen) => ({
      callbacks: { ...seen.callbacks, grader: '{}' },
    })),
    tamper('no reward without a grader callback', 'well-ungraded', (seen) => ({
      status: { ...seen.status, reward: null },
    })),
    tamper('a reward of a failure', late, (seen) => ({ api: { ...seen.api, reward: 1 } })),
    tamper('a callback of a cancelled rollout', 'cancelled-by-controller', (seen) => ({
      callbacks: { ...seen.callbacks, completion: '{}' },
    })),
  ];
}
