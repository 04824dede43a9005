/** `slipway eval run`: an evaluation of a dataset of rows over a rollout server. */
import { Option, type Command } from 'commander';
import { runEval, type EvalOutcome } from '../../app/run-eval.ts';
import { readEvalConfig } from '../../config/eval/read-eval-config.ts';
import { RolloutError } from '../../core/errors.ts';
import type { CommandScope } from '../command-scope.ts';
import { EvalDisplay } from '../eval-display.ts';
import { outcomeText, planText } from '../eval-text.ts';
import { exitCodes } from '../exit-codes.ts';
import { readSecretsFile } from '../secrets-file.ts';

interface EvalRunFlags {
  readonly name?: string;
  readonly output?: string;
  readonly datasetFile?: string;
  readonly secretsFile?: string;
  readonly rows?: string;
  readonly fresh?: boolean;
  readonly retryFailed?: boolean;
  readonly maxInFlight?: string;
  readonly yes?: boolean;
  readonly verbose?: boolean;
  readonly json?: boolean;
}

export function addEvalCommands(
  parent: Command,
  run: (action: (scope: CommandScope) => Promise<number>) => Promise<void>,
): void {
  parent
    .command('run')
    .description('run every row of a dataset as a rollout, and count')
    .argument('<CONFIG>', 'TOML file of the evaluation')
    .option('--name <NAME>', 'name of the folder of results (default: that of the file)')
    .option('-o, --output <DIR>', 'where folders of results are (default: .slipway/evals)')
    .option('--dataset-file <FILE>', 'another dataset than the file names')
    .option(
      '--secrets-file <FILE>',
      'variables (NAME=value lines) that are written nowhere; - for standard input',
    )
    .option('--rows <ROWS>', 'only these rows, the first is 0: 3,7,10-20')
    .addOption(
      new Option('--fresh', 'begin anew; what is there is kept under another name').conflicts(
        'retryFailed',
      ),
    )
    .option('--retry-failed', 'run again what failed')
    .option('--max-in-flight <N>', 'how much runs at once')
    .option('-y, --yes', 'ask nothing')
    .option('--verbose', 'print a line for every run also on a terminal, and with --json')
    .option('--json', 'print the outcome as a JSON document')
    .action((config: string, flags: EvalRunFlags) => run((scope) => evalRun(scope, config, flags)));
}

async function evalRun(scope: CommandScope, file: string, flags: EvalRunFlags): Promise<number> {
  const { terminal, signal } = scope;
  const say = (text: string): void => terminal.err(`${text}\n`);
  const warn = (text: string): void => say(`warning: ${text}`);
  const secrets =
    flags.secretsFile === undefined
      ? {}
      : await readSecretsFile(flags.secretsFile, { cwd: (await scope.ports()).machine.cwd, warn });
  const config = await readEvalConfig(file, flags, (await scope.ports(secrets)).machine);
  const ports = await scope.ports({ ...config.variables, ...secrets });
  for (const warning of config.warnings) warn(warning);
  const isJson = flags.json === true;
  const display = new EvalDisplay(terminal, {
    isDrawn: terminal.isInteractive && !isJson,
    listsRuns: flags.verbose === true || (!terminal.isInteractive && !isJson),
  });
  const outcome = await runEval(
    {
      ...{ config, signal, secrets: Object.values(secrets), note: (text) => display.note(text) },
      rows: flags.rows ?? null,
      isFresh: flags.fresh === true,
      retriesFailed: flags.retryFailed === true,
      maxInFlight: readCount(flags.maxInFlight),
      confirm: async (plan) => {
        say(planText(plan));
        if (plan.pending === 0 || flags.yes === true || isJson) return true;
        const answer = await terminal.ask('Run it? (Y/n) ', signal);
        return answer === null || !/^\s*no?\s*$/i.test(answer);
      },
      onBegin: (items) => {
        display.begin(items);
        scope.announceInterruptsBy((text) => display.note(text));
      },
      onItem: (item) => display.ended(item),
    },
    ports,
  ).finally(() => display.close());
  if (outcome === null) return exitCodes.ok;
  const exitCode = exitCodeOf(outcome, signal);
  terminal.out(
    isJson ? JSON.stringify(evalDocument(outcome, exitCode), null, 2) : outcomeText(outcome),
  );
  if (outcome.halted !== null) say(outcome.halted.describe());
  return exitCode;
}

function exitCodeOf({ halted, metrics }: EvalOutcome, signal: AbortSignal): number {
  if (signal.aborted && metrics.pending > 0) return exitCodes.interrupted;
  return halted !== null || metrics.failed > 0 ? exitCodes.failed : exitCodes.ok;
}

function evalDocument(outcome: EvalOutcome, exitCode: number): unknown {
  const { dir, metrics, halted, items, resumed } = outcome;
  return {
    ...{ schema_version: 1, exit_code: exitCode, dir, metrics, resumed },
    halted: halted === null ? null : { code: halted.code, message: halted.message },
    items: items.map(({ rowIndex, runIndex, state, rolloutId, ended, kept }) => ({
      ...{ row_index: rowIndex, run_index: runIndex, rollout_id: rolloutId },
      status: ended?.status ?? state,
      reward: ended?.reward ?? null,
      error_type: ended?.error_type ?? null,
      cause: ended?.cause ?? kept?.cause ?? null,
      tokens: kept?.tokens ?? null,
    })),
  };
}

function readCount(text: string | undefined): number | null {
  if (text === undefined) return null;
  if (/^[1-9]\d{0,3}$/.test(text)) return Number(text);
  throw new RolloutError('CONFIG_INVALID', 'expected a whole number from 1 to 9999', {
    phase: 'config',
    field: '--max-in-flight',
    remedy: 'Correct --max-in-flight.',
  });
}
