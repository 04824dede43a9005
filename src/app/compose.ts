/** The composition root: the one place that makes the real adapters of an application. */
import path from 'node:path';
import { ProgramFolder } from '../agents/installed/program-folder.ts';
import { resolveAgent } from '../agents/registry.ts';
import { readMachine, type HostVariables, type Machine } from '../config/machine.ts';
import { systemClock } from '../core/clock.ts';
import type { LockPort } from '../core/lock.ts';
import { silentLogger } from '../core/logger.ts';
import { openEngine } from '../engines/registry.ts';
import { environmentNames, resolveEnvironment } from '../environments/registry.ts';
import { ReferenceTasks } from '../jobs/reference-tasks.ts';
import type { TaskSource } from '../jobs/task-source.ts';
import { FileLocks } from '../store/file/file-lock.ts';
import { Git } from '../tasks/references/git.ts';
import { HttpRequests } from '../tasks/references/http-requests.ts';
import { ReferenceResolver } from '../tasks/references/reference-resolver.ts';
import { RegistryClient } from '../tasks/references/registry-client.ts';
import { readRegistrySettings } from '../tasks/references/registry-settings.ts';
import { SkillSources } from '../tasks/references/skill-sources.ts';
import { createTrial } from '../trial/trial.ts';
import { runProgram } from './run-program.ts';
import { ownVersion } from './own-version.ts';
import type { AppPorts } from './ports.ts';

/** Nothing is started or opened yet; CONFIG_INVALID for variables that make no sense. */
export async function composeApp(variables: HostVariables, cwd: string): Promise<AppPorts> {
  const machine = readMachine(variables, cwd);
  const { cacheDir } = machine;
  const clock = systemClock;
  const locks = new FileLocks(clock);
  const git = new Git({ variables });
  return {
    composition: { variables: { ...variables }, cwd },
    machine,
    version: await ownVersion(),
    clock,
    locks,
    resolveProvider: resolveEnvironment,
    environmentNames,
    resolveAgent,
    programs: new ProgramFolder({
      dir: path.join(cacheDir, 'agents'),
      ...{ locks, variables, extraCaBundle: machine.extraCaBundle },
      run: runProgram,
    }),
    openEngine,
    createTrial,
    taskSource: taskSource(machine, { git, locks }),
    skillSources: new SkillSources({ cacheDir, baseDir: cwd, locks, git }),
  };
}

function taskSource(
  machine: Machine,
  { git, locks }: { readonly git: Git; readonly locks: LockPort },
): TaskSource {
  const settings = readRegistrySettings(machine.variables);
  const http = new HttpRequests({ fetch, clock: systemClock });
  return new ReferenceTasks(
    new ReferenceResolver({
      cacheDir: machine.cacheDir,
      baseDir: machine.cwd,
      locks,
      registry: settings === null ? null : new RegistryClient(settings, http),
      git,
      fetch,
      clock: systemClock,
      logger: silentLogger,
    }),
    systemClock,
  );
}
