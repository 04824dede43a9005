/** `slipway jobs resume` and `slipway jobs compare`. */
import { Command } from 'commander';
import { compareJobs } from '../../app/compare-jobs.ts';
import { prepareResume } from '../../app/resume-job.ts';
import type { CommandScope } from '../command-scope.ts';
import { renderComparison } from '../comparison-text.ts';
import { exitCodes } from '../exit-codes.ts';
import { runAndReport } from './run.ts';

type Run = (action: (scope: CommandScope) => Promise<number>) => Promise<void>;

interface ResumeFlags {
  readonly path: string;
  readonly filterErrorType?: readonly string[];
  readonly json?: boolean;
  readonly yes?: boolean;
  readonly quiet?: boolean;
  readonly countFailuresAsZero?: boolean;
  readonly allowUnsandboxed?: boolean;
}

export function addResumeCommand(parent: Command, run: Run): void {
  parent
    .command('resume')
    .description('finish a job; finished trials are kept')
    .requiredOption('-p, --path <DIR>', 'job folder')
    .option(
      '-f, --filter-error-type <TYPE>',
      'run trials that ended with this exception type or code again (default: CancelledError)',
      (value, previous: readonly string[] | undefined) => [...(previous ?? []), value],
    )
    .option('--json', 'print one JSON document at the end instead of text')
    .option('-q, --quiet', 'only the summary')
    .option('-y, --yes', 'do not ask before host variables are used')
    .option('--count-failures-as-zero', 'count trials without a verdict as 0 in the summary')
    .option('--allow-unsandboxed', 'let local run plain processes where nothing better works')
    .action((flags: ResumeFlags) => run((scope) => resume(scope, flags)));
}

async function resume(scope: CommandScope, flags: ResumeFlags): Promise<number> {
  const ports = await scope.ports();
  const types = flags.filterErrorType ?? ['CancelledError'];
  const { config, removed } = await prepareResume({ dir: flags.path, types }, ports);
  for (const name of removed) scope.terminal.err(`runs again: ${name}\n`);
  return await runAndReport(scope, {
    config: flags.quiet === true ? { ...config, quiet: true } : config,
    allowUnsandboxed: flags.allowUnsandboxed === true,
    isJson: flags.json === true,
    isSureOf: () => flags.yes === true,
    countFailuresAsZero: flags.countFailuresAsZero === true,
    ports,
  });
}

interface CompareFlags {
  readonly channel?: string;
  readonly seed: string;
  readonly resamples: string;
  readonly json?: boolean;
}

export function addCompareCommand(parent: Command, run: Run): void {
  parent
    .command('compare')
    .description('compare two jobs on the same tasks, pair by pair')
    .argument('<A>', 'job folder')
    .argument('<B>', 'job folder')
    .option('--channel <NAME>', 'reward channel (default: the only one, or “reward”)')
    .option('--seed <N>', 'seed of the bootstrap', '1')
    .option('--resamples <N>', 'bootstrap resamples', '10000')
    .option('--json', 'print a JSON document')
    .action((a: string, b: string, flags: CompareFlags) =>
      run(async (scope) => {
        const result = await compareJobs({
          dirs: [a, b],
          channel: flags.channel ?? null,
          seed: flags.seed,
          resamples: flags.resamples,
        });
        scope.terminal.out(
          flags.json === true ? JSON.stringify(result, null, 2) : renderComparison(result),
        );
        return exitCodes.ok;
      }),
    );
}
