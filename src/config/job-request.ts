/** From argv values and a job file to a checked job configuration: the one way in, for `slipway run` and its siblings. */
import { resolve } from 'node:path';
import { jobConfigSchema, type JobConfig } from '../wire/harbor/job-config.ts';
import { parseDocument } from '../wire/harbor/problems.ts';
import { unknownKeys } from '../wire/harbor/unknown-keys.ts';
import { readDocument } from './document.ts';
import { readMcpFile } from './mcp-file.ts';
import { extend, isFields, section, type Fields } from './fields.ts';
import { listOf } from './flag-values.ts';
import { mergeRunFlags } from './merge-run-flags.ts';
import { Problems } from './problems.ts';
import { refuseFlags } from './refused-flags.ts';
import type { FlagValues } from './run-flags.ts';

/** What `slipway run` uses when neither flag nor file names an environment. Harbor's own default is docker. */
const defaultEnvironment = 'local';

/** Sections of a job file that Harbor knows and Slipway refuses, with the reason. */
const refusedSections: Readonly<Record<string, string>> = {
  user_agent: 'simulated users are not supported',
  user_prompt_template_path: 'simulated users are not supported',
  acpx_config: 'simulated users are not supported',
  source_jobs: 'jobs made from jobs are not supported; use slipway trials regrade',
};

/** Its fields are lifted to the top. */
const olderSection = 'orchestrator';

export interface JobRequest {
  readonly config: JobConfig;
  /** What was read but has no effect. */
  readonly warnings: readonly string[];
}

/** Reads the job file, merges the flags and checks the whole. CONFIG_INVALID lists everything that is wrong. */
export async function readJobRequest(flags: FlagValues, cwd: string): Promise<JobRequest> {
  const problems = new Problems();
  refuseFlags(Object.keys(flags), problems);
  const path = flags['--config'];
  const file = typeof path === 'string' ? await readJobFile(path, cwd) : {};
  const merged = mergeRunFlags(file, flags, problems);
  await addMcpServers(merged, flags, cwd);
  const config = compileJobConfig(merged, problems);
  return { config, warnings: unusedKeys(file) };
}

/** A misspelt field must not look as if it held. */
function unusedKeys(file: Fields): readonly string[] {
  return unknownKeys(jobConfigSchema, file)
    .filter((key) => key !== olderSection && !(key in refusedSections))
    .map((key) =>
      key === 'plugins'
        ? 'plugins: job plugins have no effect'
        : `${key}: a job has no such field; it has no effect`,
    );
}

/** A job configuration in wire spelling, checked. Problems found before are reported together with its own. */
export function compileJobConfig(document: Fields, problems: Problems = new Problems()): JobConfig {
  for (const [key, why] of Object.entries(refusedSections))
    if (!isAbsent(document[key])) problems.add(key, why, `Remove ${key}.`);
  const environment = section(document, 'environment');
  if (isAbsent(environment['type']) && isAbsent(environment['import_path']))
    environment['type'] = defaultEnvironment;
  const parsed = parseDocument(jobConfigSchema, document);
  if (!('problems' in parsed)) {
    refuseImportPaths(parsed.value, problems);
    problems.throwIfAny();
    return parsed.value;
  }
  for (const { field, message } of parsed.problems)
    problems.add(field, message, `Correct ${field === '' ? 'the job file' : field}.`);
  problems.throwIfAny();
  throw new Error('unreachable: the document has problems');
}

function isAbsent(value: unknown): boolean {
  return value === undefined || value === null || (Array.isArray(value) && value.length === 0);
}

function refuseImportPaths(config: JobConfig, problems: Problems): void {
  const refuse = (field: string, path: string | null): void => {
    if (path !== null)
      problems.add(field, 'classes named by import path run only in Harbor', `Remove ${field}.`);
  };
  refuse('environment.import_path', config.environment.import_path);
  refuse('verifier.import_path', config.verifier.import_path);
  config.agents.forEach(({ import_path: path }, index) => {
    if (path !== null && !/^[^:\s]+:[^:\s]+$/.test(path))
      problems.add(
        `agents[${index}].import_path`,
        `“${path}” is no import path`,
        'Write it as module:Class.',
      );
  });
}

async function readJobFile(path: string, cwd: string): Promise<Fields> {
  if (/^https?:\/\//i.test(path)) {
    const problems = new Problems();
    problems.add('--config', 'job files are not fetched', 'Download the file and name it.');
    problems.throwIfAny();
  }
  return await readDocument(resolve(cwd, path), '--config');
}

async function addMcpServers(job: Fields, flags: FlagValues, cwd: string): Promise<void> {
  for (const path of listOf(flags, '--mcp-config')) {
    const servers = await readMcpFile(resolve(cwd, path));
    const agents = job['agents'] ?? [{}];
    if (!Array.isArray(agents)) return; // the schema reports it
    for (const agent of agents as unknown[])
      if (isFields(agent)) extend(agent, 'mcp_servers', servers);
    job['agents'] = agents;
  }
}
