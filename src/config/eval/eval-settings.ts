/** Every key of an evaluation's own tables, once. What a key means is in `docs/evaluating.md`; a test compares the page with this table. */
import {
  choice,
  listOf,
  number,
  secretPlace,
  text,
  whole,
  word,
  type Kind,
} from '../serve/setting.ts';

interface EvalSetting<T> {
  readonly kind: Kind<T>;
  readonly fallback: T;
}

function setting<T>(kind: Kind<T>, fallback: T): EvalSetting<T> {
  return { kind, fallback };
}

function optional<T>(kind: Kind<T>): EvalSetting<T | null> {
  return { kind, fallback: null };
}

/** Eleven days: both parts of a run together are still a time that a timer takes. */
const longestSec = 1_000_000;

// A table reads best with one row per line.
// prettier-ignore
export const evalSettings = {
  'server_url': setting(text, null),
  'server_key': setting(secretPlace, null),
  'experiment.dataset': setting(text, null),
  'experiment.model_path': setting(text, null),
  'evaluation.mode': optional(choice('metadata', 'prompt')),
  'evaluation.limit': optional(whole(1)),
  'evaluation.n': setting(whole(1, 10_000), 1),
  'evaluation.batch_size': optional(whole(1, 10_000)),
  'evaluation.pass_threshold': setting(number(-Number.MAX_VALUE), 1),
  'evaluation.agent_workflow_timeout_s': optional(number(0.001, longestSec)),
  'evaluation.grader_timeout_s': optional(number(0.001, longestSec)),
  'evaluation.item_timeout_s': optional(number(0.001, longestSec)),
  'model.url': setting(text, null),
  'model.name': optional(word),
  'model.key': setting(secretPlace, null),
  'secrets.required': setting(listOf(word), []),
} as const;

export type EvalKey = keyof typeof evalSettings;

/** Known to configurations of Osmosis; what each becomes here. */
export const keptKeys: Readonly<Record<string, string>> = {
  'experiment.rollout': 'has no effect: [backend] says what is run',
  'experiment.entrypoint':
    'has no effect: no program of yours is started; [backend] names the workflow and the grader',
  'experiment.branch': 'has no effect: what is in the folder is evaluated',
  'experiment.commit_sha': 'has no effect: what is in the folder is evaluated',
};

/** Tables of slipway.toml that an evaluation decides itself, with what to do instead. */
export const ownTables: Readonly<Record<string, string>> = {
  listen:
    'The server of an evaluation listens on free loopback ports; name one that runs: server_url.',
  keys: 'The server of an evaluation serves nobody else; remove the table.',
  tenants: 'The server of an evaluation serves nobody else; remove the table.',
  store: 'The journal of the evaluation is what is kept; remove the table.',
  data_dir: 'The folder of the evaluation holds everything: --output DIR.',
};
