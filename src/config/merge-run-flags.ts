/**
 * The job configuration that results from a job file and flags, both still in wire spelling (spec: Harbor CLI, merge rules). Plain
 * values override; `--agent` replaces the agents; other agent flags reach every configured agent; task flags replace tasks and
 * datasets. Everything that is wrong goes to `problems`.
 */
import { extend, section, update, type Fields } from './fields.ts';
import { listOf, parseNumber } from './flag-values.ts';
import { mergeAgentFlags } from './merge-agent-flags.ts';
import { mergeTaskFlags } from './merge-task-flags.ts';
import type { Problems } from './problems.ts';
import { runFlags, type FlagValues, type RunFlag } from './run-flags.ts';
import { parseLooseMap, parseVariables } from './value-parsing.ts';

export function mergeRunFlags(
  file: Readonly<Fields>,
  flags: FlagValues,
  problems: Problems,
): Fields {
  const job = structuredClone(file) as Fields;
  for (const flag of runFlags)
    if (flag.path !== undefined) setPlain(job, flag, flags[flag.name], problems);
  mergeEnvironmentFlags(job, flags, problems);
  mergeVerifierFlags(job, flags, problems);
  mergeAgentFlags(job, flags, problems);
  mergeTaskFlags(job, flags, problems);
  return job;
}

function setPlain(
  job: Fields,
  flag: RunFlag,
  value: FlagValues[RunFlag['name']],
  problems: Problems,
): void {
  if (value === undefined || flag.path === undefined) return;
  const parsed =
    flag.kind === 'integer' || flag.kind === 'number'
      ? parseNumber(String(value), flag, problems)
      : value;
  if (parsed === null) return;
  let target = job;
  for (const key of flag.path.slice(0, -1)) target = section(target, key);
  target[flag.path.at(-1) ?? ''] = parsed;
}

function mergeEnvironmentFlags(job: Fields, flags: FlagValues, problems: Problems): void {
  const environment: Fields = section(job, 'environment');
  extend(environment, 'extra_allowed_hosts', listOf(flags, '--allow-environment-host'));
  extend(environment, 'extra_docker_compose', listOf(flags, '--extra-docker-compose'));
  const kwargs = listOf(flags, '--environment-kwarg');
  update(environment, 'kwargs', parseLooseMap(kwargs, '--environment-kwarg', problems));
  const mounts = flags['--mounts'];
  if (typeof mounts === 'string') setMounts(environment, mounts, problems);
  const tpu = flags['--override-tpu'];
  if (typeof tpu === 'string' && tpu !== '') setTpu(environment, tpu, problems);
  if (Object.keys(environment).length === 0) delete job['environment'];
}

function setMounts(environment: Fields, text: string, problems: Problems): void {
  try {
    const mounts: unknown = JSON.parse(text);
    if (Array.isArray(mounts)) {
      delete environment['mounts_json'];
      environment['mounts'] = mounts;
      return;
    }
  } catch {
    // Reported below together with other non-lists.
  }
  problems.add('--mounts', 'not a JSON list', 'Give a JSON list of mounts.');
}

function setTpu(environment: Fields, text: string, problems: Problems): void {
  const [type, topology, ...rest] = text.split('=');
  if (type && topology && rest.length === 0) environment['override_tpu'] = { type, topology };
  else problems.add('--override-tpu', 'expected TYPE=TOPOLOGY', 'Write it as v5e=2x2.');
}

function mergeVerifierFlags(job: Fields, flags: FlagValues, problems: Problems): void {
  const verifier = section(job, 'verifier');
  const variables = listOf(flags, '--verifier-env');
  update(verifier, 'env', parseVariables(variables, '--verifier-env', problems));
  const kwargs = listOf(flags, '--verifier-kwarg');
  update(verifier, 'kwargs', parseLooseMap(kwargs, '--verifier-kwarg', problems));
  extend(verifier, 'include_logs', listOf(flags, '--verifier-include-logs'));
  extend(verifier, 'exclude_logs', listOf(flags, '--verifier-exclude-logs'));
  if (Object.keys(verifier).length === 0) delete job['verifier'];
}
