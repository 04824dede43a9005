import { resolve } from 'node:path';
import { extend, isFields, update, type Fields } from './fields.ts';
import { listOf, parseNumber } from './flag-values.ts';
import type { Problems } from './problems.ts';
import { runFlags, type FlagValues } from './run-flags.ts';
import { parseLooseMap, parseVariables } from './value-parsing.ts';

/**
 * `--agent` and `--agent-import-path` replace the agents, one per agent and model; without it every configured agent gets the other flags, and `--model`
 * alone names the model of agents that have none (Harbor ignores it).
 */
export function mergeAgentFlags(job: Fields, flags: FlagValues, problems: Problems): void {
  const named = [
    ...listOf(flags, '--agent').map((name) => agentNamed(name, problems)),
    ...listOf(flags, '--agent-import-path').map((path) => ({ import_path: path })),
  ];
  const models = listOf(flags, '--model');
  if (named.length > 0)
    job['agents'] = named.flatMap((agent) =>
      models.length === 0 ? [agent] : models.map((model) => ({ ...agent, model_name: model })),
    );
  else if (models.length > 0) applyModels(job, models);
  const changes = agentChanges(flags, problems);
  if (changes.length === 0) return;
  const agents = job['agents'] ?? [{}];
  if (!Array.isArray(agents) || !agents.every(isFields)) return; // the schema reports it
  for (const agent of agents) for (const change of changes) change(agent);
  job['agents'] = agents;
}

/** As in Harbor, a name with a colon is an import path. */
function agentNamed(name: string, problems: Problems): Fields {
  if (name.startsWith('acp:'))
    problems.add(
      '--agent',
      `“${name}” is an agent of a registry, which runs only in Harbor`,
      'Name a built-in agent, or a class as module:Class.',
    );
  return name.includes(':') ? { import_path: name } : { name };
}

function applyModels(job: Fields, models: readonly string[]): void {
  const agents = job['agents'] ?? [{}];
  if (!Array.isArray(agents) || !agents.every(isFields)) return;
  job['agents'] = agents.flatMap((agent) =>
    agent['model_name'] === undefined || agent['model_name'] === null
      ? models.map((model) => ({ ...structuredClone(agent), model_name: model }))
      : [agent],
  );
}

type Change = (agent: Fields) => void;

function agentChanges(flags: FlagValues, problems: Problems): Change[] {
  const changes: Change[] = [];
  const kwargs = parseLooseMap(listOf(flags, '--agent-kwarg'), '--agent-kwarg', problems);
  const variables = parseVariables(listOf(flags, '--agent-env'), '--agent-env', problems);
  if (Object.keys(kwargs).length > 0) changes.push((agent) => update(agent, 'kwargs', kwargs));
  if (Object.keys(variables).length > 0) changes.push((agent) => update(agent, 'env', variables));
  for (const [flag, key] of extending) {
    const values = listOf(flags, flag);
    if (values.length > 0) changes.push((agent) => extend(agent, key, values));
  }
  if (flags['--resume-trajectory'] === true)
    changes.push((agent) => (agent['resume_trajectory'] = true));
  const trajectory = flags['--load-trajectory'];
  if (typeof trajectory === 'string')
    changes.push((agent) => (agent['load_trajectory'] = resolve(trajectory)));
  const concurrent = flags['--n-concurrent-agents'];
  const flag = runFlags.find(({ name }) => name === '--n-concurrent-agents');
  if (typeof concurrent === 'string' && flag !== undefined) {
    const limit = parseNumber(concurrent, flag, problems);
    if (limit !== null) changes.push((agent) => (agent['n_concurrent'] = limit));
  }
  return changes;
}

const extending = [
  ['--allow-agent-host', 'extra_allowed_hosts'],
  ['--agent-include-logs', 'include_logs'],
  ['--agent-exclude-logs', 'exclude_logs'],
  ['--skill', 'skills'],
] as const;
