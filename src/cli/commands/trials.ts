/** `slipway trials ls`, `show` and `regrade`. */
import type { Command } from 'commander';
import type { TrialSummary } from '../../app/run-job.ts';
import { listTrials, regradeTrials, showTrial } from '../../app/trials.ts';
import type { CommandScope } from '../command-scope.ts';
import { exitCodes } from '../exit-codes.ts';
import { phaseColumns, phaseTimesOf } from '../phase-times.ts';
import { trialDocument } from '../run-document.ts';
import { plainText } from '../plain-text.ts';
import { counted, formatDuration, renderTable } from '../table.ts';
import { noTokenIdsText, shortVerdictText, verdictText } from '../verdict-text.ts';
import { runAndReport } from './run.ts';

type Run = (action: (scope: CommandScope) => Promise<number>) => Promise<void>;

export function addTrialsCommands(parent: Command, run: Run): void {
  parent
    .command('ls')
    .description('list the trials of a job')
    .argument('<JOB>', 'job folder')
    .option('--json', 'print a JSON document')
    .action((dir: string, flags: { readonly json?: boolean }) =>
      run((scope) => list(scope, dir, flags.json === true)),
    );
  parent
    .command('show')
    .description('show one trial: verdict, failure, where the time went, its files')
    .argument('<TRIAL>', 'trial folder')
    .option('--json', 'print result.json')
    .action((dir: string, flags: { readonly json?: boolean }) =>
      run((scope) => show(scope, dir, flags.json === true)),
    );
  parent
    .command('regrade')
    .description('run the separate verifier of finished trials again, without the agent')
    .argument('<PATH>', 'trial folder or job folder')
    .option('-o, --jobs-dir <DIR>', 'where the new job goes', 'jobs')
    .option('--job-name <NAME>', 'name of the new job')
    .option('-e, --env <TYPE>', 'environment (default: as before)')
    .option('--json', 'print one JSON document at the end instead of text')
    .action(
      (
        path: string,
        flags: {
          readonly jobsDir: string;
          readonly jobName?: string;
          readonly env?: string;
          readonly json?: boolean;
        },
      ) =>
        run(async (scope) => {
          const ports = await scope.ports();
          const { config, sources } = await regradeTrials(
            {
              path,
              jobsDir: flags.jobsDir,
              jobName: flags.jobName ?? '',
              environment: flags.env ?? null,
            },
            ports,
          );
          return await runAndReport(scope, {
            config,
            sources,
            allowUnsandboxed: false,
            isJson: flags.json === true,
            isSureOf: () => true,
            countFailuresAsZero: false,
            ports,
          });
        }),
    );
}

async function list(scope: CommandScope, dir: string, isJson: boolean): Promise<number> {
  const { trials, others } = await listTrials(dir);
  if (isJson)
    scope.terminal.out(
      JSON.stringify({ schema_version: 1, trials: trials.map(trialDocument), others }, null, 2),
    );
  else {
    const rows = trials.map((trial) => [
      trial.trialName,
      trial.taskName,
      trial.agentName,
      shortVerdictText(trial),
      trial.phaseTimes.total_ms === undefined ? '–' : formatDuration(trial.phaseTimes.total_ms),
    ]);
    scope.terminal.out(renderTable(['trial', 'task', 'agent', 'verdict', 'total'], rows));
    for (const { name, state } of others) scope.terminal.out(`${name}: ${state}`);
  }
  return exitCodes.ok;
}

async function show(scope: CommandScope, dir: string, isJson: boolean): Promise<number> {
  const { result, summary, files } = await showTrial(dir);
  if (isJson) {
    scope.terminal.out(JSON.stringify(result, null, 2));
    return exitCodes.ok;
  }
  const times = phaseTimesOf(summary.phaseTimes).map((ms) =>
    ms === null ? '–' : formatDuration(ms),
  );
  scope.terminal.out(
    [
      `${summary.trialName}  (task ${summary.taskName}, agent ${summary.agentName})`,
      verdictText(summary),
      ...usageLine(summary),
      ...detailLines(result.slipway?.failure?.detail ?? null),
      '',
      renderTable([...phaseColumns], [times]),
      '',
      ...files,
    ].join('\n'),
  );
  return exitCodes.ok;
}

/** What the agent said of its use of a model; absent when it said nothing. */
function usageLine({ turns, tokens, lacksTokenIds }: TrialSummary): string[] {
  const parts = [
    ...(turns === null ? [] : [counted(turns, 'turn')]),
    ...(tokens.input === null ? [] : [`${tokens.input} tokens in`]),
    ...(tokens.cache === null || tokens.cache === 0 ? [] : [`${tokens.cache} of them cached`]),
    ...(tokens.output === null ? [] : [`${tokens.output} tokens out`]),
    ...(lacksTokenIds ? [noTokenIdsText] : []),
  ];
  return parts.length === 0 ? [] : [parts.join(', ')];
}

/** What stands behind a failure, such as the end of a build log. */
function detailLines(detail: string | null): string[] {
  if (detail === null) return [];
  return [
    '',
    ...detail
      .trimEnd()
      .split('\n')
      .map((line) => `  ${plainText(line)}`),
  ];
}
