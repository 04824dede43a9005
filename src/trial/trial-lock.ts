import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { boundary } from '../core/errors.ts';
import { dumpAgentConfig, dumpEnvironmentConfig, dumpVerifierConfig } from '../wire/harbor/dump.ts';
import type { HostVariables } from '../wire/harbor/sensitive.ts';
import type { TrialConfig } from '../wire/harbor/trial-config.ts';
import { trialLockSchema, type FileLock, type TrialLock } from '../wire/harbor/trial-lock.ts';
import { absolutePath } from './home-path.ts';
import type { TrialInputs } from './trial-options.ts';

/** Everything that decides what a trial does, files by digest, secrets masked. CONFIG_INVALID when a named file cannot be read. */
export async function lockTrial(
  config: TrialConfig,
  inputs: TrialInputs,
  {
    hostVariables,
    signal,
  }: { readonly hostVariables: HostVariables; readonly signal: AbortSignal },
): Promise<TrialLock> {
  const { task } = inputs;
  const digestFile = (path: string): Promise<FileLock> => fileLock(path, signal);
  return trialLockSchema.parse({
    schema_version: 2,
    task: inputs.taskLock,
    install_only: config.install_only,
    timeout_multiplier: config.timeout_multiplier,
    agent_timeout_multiplier: config.agent_timeout_multiplier,
    verifier_timeout_multiplier: config.verifier_timeout_multiplier,
    agent_setup_timeout_multiplier: config.agent_setup_timeout_multiplier,
    environment_build_timeout_multiplier: config.environment_build_timeout_multiplier,
    extra_instructions: [
      ...(await Promise.all(config.extra_instruction_paths.map(digestFile))),
      ...config.extra_instructions.map((text) => ({ path: null, digest: digestOf(text) })),
    ],
    agent: dumpAgentConfig(config.agent, hostVariables),
    skills: inputs.skills.map(({ lock }) => lock),
    environment: dumpEnvironmentConfig(config.environment, hostVariables),
    extra_docker_compose: await Promise.all(
      config.environment.extra_docker_compose.map(digestFile),
    ),
    verifier: {
      ...dumpVerifierConfig(config.verifier, hostVariables),
      environment_mode: task.steps.length === 0 ? task.verifier.mode : null,
    },
    source_trial: config.source_trial,
  });
}

async function fileLock(path: string, signal: AbortSignal): Promise<FileLock> {
  const at = { code: 'CONFIG_INVALID', phase: 'config', what: path } as const;
  const bytes = await boundary(at, () => readFile(absolutePath(path), { signal }));
  return { path, digest: digestOf(bytes) };
}

function digestOf(bytes: Buffer | string): string {
  return `sha256:${createHash('sha256').update(bytes).digest('hex')}`;
}
