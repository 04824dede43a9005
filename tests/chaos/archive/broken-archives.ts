/** What archives that are not ours would do to a document: each must be found. */
import type { Json } from './atif-documents.ts';

type Change = (document: Json) => Json;

const eachStep =
  (change: (step: Json) => Json): Change =>
  (document) => ({ ...document, steps: (document['steps'] as readonly Json[]).map(change) });

const without =
  (...keys: readonly string[]) =>
  (value: Json): Json =>
    Object.fromEntries(Object.entries(value).filter(([key]) => !keys.includes(key)));

const agentWithout =
  (key: string): Change =>
  (document) => ({ ...document, agent: without(key)(document['agent'] as Json) });

const metricsWithout = (key: string): Change =>
  eachStep((step) =>
    step['metrics'] == null ? step : { ...step, metrics: without(key)(step['metrics'] as Json) },
  );

export const brokenArchives: readonly (readonly [what: string, change: Change])[] = [
  ['tool definitions are dropped', agentWithout('tool_definitions')],
  ['the agent’s own fields are dropped', agentWithout('extra')],
  ['subagents are dropped', without('subagent_trajectories')],
  ['notes are dropped', without('notes')],
  ['copied context is not marked', eachStep(without('is_copied_context'))],
  ['observations are dropped', eachStep(without('observation'))],
  [
    'parts of a message become text',
    eachStep((step) => ({ ...step, message: JSON.stringify(step['message']) })),
  ],
  ['token ids are erased', metricsWithout('completion_token_ids')],
  ['log-probabilities are erased', metricsWithout('logprobs')],
  ['times of steps are dropped', eachStep(without('timestamp'))],
  ['the old ids stay', (document) => ({ ...document, session_id: 'plain' })],
  ['the version is changed', (document) => ({ ...document, schema_version: 'ATIF-v9' })],
  [
    'what was known of the rollout is dropped',
    (document) => ({ ...document, extra: { osmosis: {} } }),
  ],
];
