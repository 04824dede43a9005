/**
 * The trajectory of a rollout: the agent's own document as it is, or one made of the sample's messages; with the rollout's identity in place of the
 * agent's, what the controller reported, and what is known of the rollout under `extra.osmosis`. Keys that are there already stay.
 */
import { lacksTokenIds, withTokenIds, type SampledCall } from '../trajectory/token-ids.ts';
import { validateTrajectory } from '../trajectory/validate.ts';
import type { AtifTrajectory } from '../wire/atif/atif.ts';
import { stepsOfChat } from './chat-steps.ts';
import { withReport } from './controller-report.ts';
import type { RolloutFacts } from './rollout-documents.ts';

/** null = there is no conversation, or it cannot be said; then a warning tells why. */
export function rolloutTrajectory(
  facts: RolloutFacts,
  calls: readonly SampledCall[],
): {
  readonly trajectory: AtifTrajectory | null;
  readonly warnings: readonly string[];
} {
  const document = documentOf(facts, calls);
  if (document === null) return { trajectory: null, warnings: [] };
  const { trajectory, unmatched, warnings } = withReport(document, facts.report);
  const own = withIdentity(trajectory, facts, unmatched);
  const [problem, ...more] = validateTrajectory(own);
  if (problem === undefined) return { trajectory: own, warnings };
  const others = more.length === 0 ? '' : ` (and ${more.length} more)`;
  return {
    trajectory: null,
    warnings: [...warnings, `no trajectory was kept: ${problem}${others}`],
  };
}

/** Whether what the gateway has kept of the agent's calls adds to its document. */
export function wantsCalls({ result }: RolloutFacts): boolean {
  const document = result.trajectory as unknown as AtifTrajectory | null;
  return document !== null && lacksTokenIds(document.steps);
}

function documentOf(
  { result, version }: RolloutFacts,
  calls: readonly SampledCall[],
): AtifTrajectory | null {
  if (result.trajectory !== null) {
    const document = result.trajectory as unknown as AtifTrajectory;
    if (calls.length === 0) return document;
    return { ...document, steps: withTokenIds(document.steps, calls).steps };
  }
  const messages = result.sample?.trajectoryMessages ?? [];
  if (messages.length === 0) return null;
  return {
    schema_version: 'ATIF-v1.7',
    agent: { name: 'slipway', version },
    steps: stepsOfChat(messages),
  };
}

function withIdentity(
  document: AtifTrajectory,
  facts: RolloutFacts,
  unmatched: Readonly<Record<string, unknown>>,
): AtifTrajectory {
  const { rolloutId, label, metadata, extraFields, result } = facts;
  const { session_id: session, trajectory_id: trajectory, extra, ...rest } = document;
  const { sample, diagnostics } = result;
  const osmosis = {
    rollout_id: rolloutId,
    label: sample?.label ?? label,
    reward: sample?.reward ?? null,
    sample_metrics: sample?.metrics ?? null,
    sample_extra_fields: sample?.extraFields ?? null,
    request_metadata: metadata,
    request_extra_fields: extraFields,
    result_extra_fields: diagnostics,
    native_session_id: session === rolloutId ? null : (session ?? null),
    native_trajectory_id: trajectory === rolloutId ? null : (trajectory ?? null),
    ...unmatched,
  };
  const known = Object.entries(osmosis).filter(([, value]) => saysSomething(value));
  const before = extra?.['osmosis'];
  return {
    ...(rest.schema_version !== undefined && { schema_version: rest.schema_version }),
    session_id: rolloutId,
    trajectory_id: rolloutId,
    ...rest,
    extra: {
      ...extra,
      osmosis: { ...(typeof before === 'object' ? before : {}), ...Object.fromEntries(known) },
    },
  };
}

function saysSomething(value: unknown): boolean {
  if (value === null || value === undefined) return false;
  return typeof value !== 'object' || Array.isArray(value) || Object.keys(value).length > 0;
}
