/** Evidence that somebody tampered with: each must be found, or the judge proves nothing. */
import type { OutcomeEvidence } from './outcome-row.ts';

type Body = Readonly<Record<string, unknown>>;

/** Of a rollout whose agent ran out of time after a correct solution. */
export function tamperedOutcomes(
  seen: OutcomeEvidence,
): readonly (readonly [what: string, evidence: OutcomeEvidence])[] {
  const [completion, grader] = seen.callbacks;
  if (completion === undefined || grader === undefined) return [];
  const body = JSON.parse(grader.text) as Body;
  const saying = (fields: Body): OutcomeEvidence => ({
    ...seen,
    callbacks: [completion, { ...grader, text: JSON.stringify({ ...body, ...fields }) }],
  });
  return [
    [
      'the verdict as a reward on the wire',
      saying({ sample: { ...(body['sample'] as Body), reward: 1 } }),
    ],
    ['a success on the wire', saying({ status: 'success', err_message: null, err_category: null })],
    ['another category', saying({ err_category: 'timeout' })],
    ['a key more', saying({ reward: null })],
    ['no diagnostics', saying({ extra_fields: null })],
    ['the callbacks in the other order', { ...seen, callbacks: [grader, completion] }],
    [
      'one key for both callbacks',
      { ...seen, callbacks: [completion, { ...grader, key: completion.key }] },
    ],
    ['no completion', { ...seen, callbacks: [grader] }],
    [
      'spaces in the body',
      { ...seen, callbacks: [completion, { ...grader, text: `${grader.text} ` }] },
    ],
    ['no verdict on the API', { ...seen, api: { ...seen.api, verdict: null } }],
    ['not to be trained on', { ...seen, api: { ...seen.api, trainable: false } }],
    ['a reward of the status route', { ...seen, status: { ...seen.status, reward: 1 } }],
    ['another stage', { ...seen, api: { ...seen.api, stage: 'verifier' } }],
  ];
}
