/** `slipway run`, also `slipway job start`. */
import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import type { Command } from 'commander';
import { runJob, type JobOutcome, type VariableUse } from '../../app/run-job.ts';
import type { SourceTrial } from '../../app/trials.ts';
import { parseEnvFile } from '../../config/env-file.ts';
import { readJobRequest } from '../../config/job-request.ts';
import { Problems } from '../../config/problems.ts';
import type { FlagValues } from '../../config/run-flags.ts';
import { messageOf, RolloutError } from '../../core/errors.ts';
import { dumpNonDefaultJobConfig } from '../../wire/harbor/job-config-dump.ts';
import type { JobConfig } from '../../wire/harbor/job-config.ts';
import type { CommandScope } from '../command-scope.ts';
import { exitCodes } from '../exit-codes.ts';
import { ProgressDisplay, type Display } from '../progress-display.ts';
import { ProgressLines, quietDisplay } from '../progress-lines.ts';
import { runDocument } from '../run-document.ts';
import { addRunOptions, flagValues } from '../run-options.ts';
import { renderSummary } from '../summary.ts';
import { renderTable } from '../table.ts';
import type { Terminal } from '../terminal.ts';

export function addRunCommand(
  parent: Command,
  name: string,
  run: (action: (scope: CommandScope) => Promise<number>) => Promise<void>,
): void {
  const command = parent
    .command(name)
    .description('run agents on tasks and verify what they did')
    .allowExcessArguments(false);
  addRunOptions(command).action(async () => {
    await run((scope) => runCommand(scope, flagValues(command)));
  });
}

async function runCommand(scope: CommandScope, flags: FlagValues): Promise<number> {
  const given = { ...(await readVariables(flags)), ...interpreterOf(flags) };
  const ports = await scope.ports(given);
  const { config, warnings } = await readJobRequest(flags, ports.machine.cwd);
  if (flags['--print-config'] === true) {
    const printed = dumpNonDefaultJobConfig(config, ports.machine.variables);
    scope.terminal.out(JSON.stringify(printed, null, 2));
    return exitCodes.ok;
  }
  for (const warning of warnings) scope.terminal.err(`${warning}\n`);
  return await runAndReport(scope, {
    config,
    allowUnsandboxed: flags['--allow-unsandboxed'] === true,
    isJson: flags['--json'] === true,
    isSureOf: (variable) => flags['--yes'] === true || Object.hasOwn(given, variable),
    countFailuresAsZero: flags['--count-failures-as-zero'] === true,
    ports,
  });
}

export interface RunRequest {
  readonly config: JobConfig;
  readonly allowUnsandboxed: boolean;
  readonly isJson: boolean;
  /** Host variables that tasks may use without a question. */
  readonly isSureOf: (variable: string) => boolean;
  readonly countFailuresAsZero: boolean;
  /** Finished trials to grade again, one per task of the configuration. */
  readonly sources?: readonly SourceTrial[];
  readonly ports: Awaited<ReturnType<CommandScope['ports']>>;
}

/** Runs a job with its display and prints the result. */
export async function runAndReport(scope: CommandScope, request: RunRequest): Promise<number> {
  const { terminal } = scope;
  const display = chooseDisplay(terminal, request);
  const announce = (text: string): void => display.note(text);
  scope.announceInterruptsBy(announce);
  let outcome: JobOutcome | null;
  try {
    outcome = await runJob(
      {
        config: request.config,
        allowUnsandboxed: request.allowUnsandboxed,
        sources: request.sources ?? null,
        observe: (event) => display.accept(event),
        note: (text) => display.note(text),
        confirmVariables: async (uses) => {
          const doubtful = uses.filter(({ name }) => !request.isSureOf(name));
          if (doubtful.length === 0 || request.isJson) return true;
          return await display.standAside(async () => {
            scope.announceInterruptsBy(null);
            const isConfirmed = await confirmVariables(scope, doubtful);
            scope.announceInterruptsBy(announce);
            return isConfirmed;
          });
        },
        signal: scope.signal,
      },
      request.ports,
    );
  } finally {
    display.close();
  }
  if (outcome === null) return exitCodes.ok;
  const { metricProblem, result, notStarted } = outcome.report;
  if (metricProblem !== null) terminal.err(`${metricProblem.describe()}\n`);
  const isInterrupted = scope.signal.aborted && (notStarted > 0 || hasCancelled(outcome));
  const exitCode = isInterrupted
    ? exitCodes.interrupted
    : result.stats.n_errored_trials > 0 || metricProblem !== null
      ? exitCodes.failed
      : exitCodes.ok;
  terminal.out(
    request.isJson
      ? JSON.stringify(runDocument(outcome, exitCode), null, 2)
      : renderSummary(outcome, request),
  );
  return exitCode;
}

function hasCancelled({ report }: JobOutcome): boolean {
  return report.result.stats.n_cancelled_trials > 0;
}

function chooseDisplay(terminal: Terminal, { config, isJson }: RunRequest): Display {
  if (terminal.isInteractive) return new ProgressDisplay(terminal, { isBarOnly: config.quiet });
  return config.quiet || isJson ? quietDisplay(terminal) : new ProgressLines(terminal);
}

async function confirmVariables(
  { terminal, signal }: CommandScope,
  uses: readonly VariableUse[],
): Promise<boolean> {
  const rows = uses.map(({ name, field, state }) => [name, field, state]);
  const table = renderTable(['host variable', 'used as', 'state'], rows);
  const question = `${table}\nThe tasks use these variables. Proceed? (Y/n) `;
  const answer = await terminal.ask(question, signal);
  return answer === null || !/^\s*no?\s*$/i.test(answer);
}

/** Where agents in Python look for it. */
function interpreterOf(flags: FlagValues): Record<string, string> {
  const python = flags['--python'];
  return typeof python === 'string' ? { SLIPWAY_PYTHON: python } : {};
}

async function readVariables(flags: FlagValues): Promise<Record<string, string>> {
  const path = flags['--env-file'];
  if (typeof path !== 'string') return {};
  let text: string;
  try {
    text = await readFile(resolve(path), 'utf8');
  } catch (error) {
    throw new RolloutError('CONFIG_INVALID', `${path}: ${messageOf(error)}`, {
      phase: 'config',
      field: '--env-file',
      remedy: 'Name a file that exists and can be read.',
      cause: error,
    });
  }
  const problems = new Problems();
  const variables = parseEnvFile(text, problems);
  problems.throwIfAny();
  return variables;
}
