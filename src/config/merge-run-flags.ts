/**
 * The job configuration that results from a job file and flags, both still in wire spelling (spec: Harbor CLI, merge rules). Plain
 * values override; `--agent` replaces the agents; other agent flags reach every configured agent; task flags replace tasks and
 * datasets. Everything that is wrong goes to `problems`.
 */
import { mergeAgentFlags } from './merge-agent-flags.ts';
import { mergeTaskFlags } from './merge-task-flags.ts';
import type { Problems } from './problems.ts';
import { runFlags, type FlagValues, type RunFlag } from './run-flags.ts';
import { parseLooseMap, parseVariables } from './value-parsing.ts';

export type Fields = Record<string, unknown>;

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

/** The number behind a flag, or null after adding a problem. */
export function parseNumber(text: string, flag: RunFlag, problems: Problems): number | null {
  const value = text.trim() === '' ? Number.NaN : Number(text);
  const isWhole = flag.kind !== 'integer' || Number.isSafeInteger(value);
  if (Number.isFinite(value) && isWhole && value >= (flag.min ?? -Infinity)) return value;
  const kind = flag.kind === 'integer' ? 'a whole number' : 'a number';
  const bound = flag.min === undefined ? '' : ` of at least ${flag.min}`;
  problems.add(flag.name, `“${text}” is not ${kind}${bound}`, `Give ${kind}${bound}.`);
  return null;
}

/** The value of a list flag. */
export function listOf(flags: FlagValues, name: RunFlag['name']): readonly string[] {
  const value = flags[name];
  return Array.isArray(value) ? (value as readonly string[]) : [];
}

/** The map at `key`, made when missing. A wrong type is left for the schema to report. */
export function section(fields: Fields, key: string): Fields {
  const value = fields[key];
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Fields;
  const made: Fields = {};
  if (value === undefined || value === null) fields[key] = made;
  return made;
}

/** Appends to the list at `key`. A wrong type is left for the schema to report. */
export function extend(fields: Fields, key: string, values: readonly unknown[]): void {
  if (values.length === 0) return;
  const value = fields[key] ?? [];
  if (Array.isArray(value)) fields[key] = [...(value as unknown[]), ...values];
}

/** Puts entries over the map at `key`. */
export function update(fields: Fields, key: string, entries: Readonly<Fields>): void {
  if (Object.keys(entries).length > 0) Object.assign(section(fields, key), entries);
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
