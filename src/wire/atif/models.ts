/**
 * ATIF's objects, fields in the order of the format, and its rules. One model reads every version from 1.0 to 1.7: a document may use fields that
 * are newer than its label.
 */
import { isIsoTimestamp } from './iso-timestamp.ts';
import {
  anyObject,
  anyOf,
  decimal,
  defaulted,
  integer,
  invalid,
  listOf,
  numbers,
  object,
  oneOf,
  optional,
  required,
  text,
  truth,
  type AtifProblem,
  type AtifRule,
  type AtifType,
} from './lax-types.ts';
import type { AtifStep, AtifTrajectory } from './atif.ts';

export const atifVersions = Array.from({ length: 8 }, (_, minor) => `ATIF-v1.${minor}`);

const imageSource = object('an image source', {
  media_type: required(oneOf(['image/jpeg', 'image/png', 'image/gif', 'image/webp'])),
  path: required(text),
});

const partRule: AtifRule = (part) => {
  const [needed, banned] = part['type'] === 'text' ? ['text', 'source'] : ['source', 'text'];
  if (part[needed] === undefined)
    return `a part of type '${String(part['type'])}' needs '${needed}'`;
  if (part[banned] !== undefined)
    return `a part of type '${String(part['type'])}' must not have '${banned}'`;
  return null;
};

/** The name of a list of parts in locations is the one that Harbor prints. */
const content = anyOf({
  str: text,
  'list[function-after[validate_content_type(), ContentPart]]': listOf(
    object(
      'a content part',
      {
        type: required(oneOf(['text', 'image'])),
        text: optional(text),
        source: optional(imageSource),
      },
      [partRule],
    ),
  ),
});

const subagentRef = object(
  'a reference to a subagent',
  {
    trajectory_id: optional(text),
    trajectory_path: optional(text),
    session_id: optional(text),
    extra: optional(anyObject),
  },
  [
    (ref) =>
      ref['trajectory_id'] === undefined && ref['trajectory_path'] === undefined
        ? "a reference needs 'trajectory_id' or 'trajectory_path'"
        : null,
  ],
);

const observation = object('an observation', {
  results: required(
    listOf(
      object('an observation result', {
        source_call_id: optional(text),
        content: optional(content),
        subagent_trajectory_ref: optional(listOf(subagentRef)),
        extra: optional(anyObject),
      }),
    ),
  ),
});

const toolCall = object('a tool call', {
  tool_call_id: required(text),
  function_name: required(text),
  arguments: required(anyObject),
  extra: optional(anyObject),
});

const metrics = object('metrics', {
  prompt_tokens: optional(integer()),
  completion_tokens: optional(integer()),
  cached_tokens: optional(integer()),
  cost_usd: optional(decimal),
  prompt_token_ids: optional(numbers('integer')),
  completion_token_ids: optional(numbers('integer')),
  logprobs: optional(numbers('decimal')),
  extra: optional(anyObject),
});

const timestamp: AtifType = (value, location, problems) => {
  const found = text(value, location, problems);
  if (typeof found !== 'string' || isIsoTimestamp(found)) return found;
  problems.push({ location, message: `Value error, '${found}' is no ISO 8601 timestamp` });
  return invalid;
};

const agentFields = [
  'model_name',
  'reasoning_effort',
  'reasoning_content',
  'tool_calls',
  'metrics',
];

const sourceRule: AtifRule = (step) => {
  if (step['source'] === 'agent') return null;
  const field = agentFields.find((name) => step[name] !== undefined);
  return field === undefined
    ? null
    : `a step of source '${String(step['source'])}' must not have '${field}': only agent steps do`;
};

const noCallRule: AtifRule = (step) => {
  if (step['source'] !== 'agent' || step['llm_call_count'] !== 0) return null;
  const field = ['metrics', 'reasoning_content'].find((name) => step[name] !== undefined);
  return field === undefined ? null : `a step with llm_call_count 0 must not have '${field}'`;
};

const step = object(
  'a step',
  {
    step_id: required(integer(1)),
    timestamp: optional(timestamp),
    source: required(oneOf(['system', 'user', 'agent'])),
    model_name: optional(text),
    reasoning_effort: optional(anyOf({ str: text, float: decimal })),
    message: required(content),
    reasoning_content: optional(text),
    tool_calls: optional(listOf(toolCall)),
    observation: optional(observation),
    metrics: optional(metrics),
    is_copied_context: optional(truth),
    llm_call_count: optional(integer(0)),
    extra: optional(anyObject),
  },
  [sourceRule, noCallRule],
);

const agent = object('an agent', {
  name: required(text),
  version: required(text),
  model_name: optional(text),
  tool_definitions: optional(listOf(anyObject)),
  extra: optional(anyObject),
});

const finalMetrics = object('final metrics', {
  total_prompt_tokens: optional(integer()),
  total_completion_tokens: optional(integer()),
  total_cached_tokens: optional(integer()),
  total_cost_usd: optional(decimal),
  total_steps: optional(integer(0)),
  extra: optional(anyObject),
});

const countRule: AtifRule = (trajectory) => {
  const steps = trajectory['steps'] as readonly AtifStep[]; // a rule runs when the fields are fine
  const index = steps.findIndex(({ step_id }, position) => step_id !== position + 1);
  return index < 0
    ? null
    : `steps[${index}].step_id is ${steps[index]?.step_id}, but steps count from 1 without gaps: ${index + 1}`;
};

const embeddedRule: AtifRule = (trajectory) => {
  const embedded = (trajectory['subagent_trajectories'] ?? []) as readonly AtifTrajectory[];
  const seen = new Set<string>();
  for (const [index, { trajectory_id: id }] of embedded.entries()) {
    if (id == null) return `subagent_trajectories[${index}] needs a trajectory_id`;
    if (seen.has(id)) return `subagent_trajectories[${index}].trajectory_id '${id}' is not unique`;
    seen.add(id);
  }
  return null;
};

const callRule: AtifRule = (trajectory) => {
  for (const { step_id, tool_calls, observation: seen } of trajectory[
    'steps'
  ] as readonly AtifStep[]) {
    const ids = new Set((tool_calls ?? []).map(({ tool_call_id }) => tool_call_id));
    for (const { source_call_id: id } of seen?.results ?? [])
      if (id != null && !ids.has(id))
        return `source_call_id '${id}' names no tool call of step ${step_id}`;
  }
  return null;
};

const embedded: AtifType = (value, location, problems) => trajectory(value, location, problems);

const trajectory: AtifType = object(
  'a trajectory',
  {
    schema_version: defaulted(oneOf(atifVersions)),
    session_id: optional(text),
    trajectory_id: optional(text),
    agent: required(agent),
    steps: required(listOf(step, 1)),
    notes: optional(text),
    final_metrics: optional(finalMetrics),
    continued_trajectory_ref: optional(text),
    extra: optional(anyObject),
    subagent_trajectories: optional(listOf(embedded)),
  },
  [countRule, embeddedRule, callRule],
);

export type AtifReading =
  { readonly trajectory: AtifTrajectory } | { readonly problems: readonly AtifProblem[] };

/** Reads a whole document of any version: coerced, without nulls in the format's own fields; or everything that is wrong with it. */
export function readTrajectory(value: unknown): AtifReading {
  const problems: AtifProblem[] = [];
  const found = trajectory(value, '', problems);
  // The model has checked every field that the type names.
  return found === invalid ? { problems } : { trajectory: found as AtifTrajectory };
}
