/** `slipway trial start -c FILE`: one trial from a trial configuration, as a job of one. */
import { resolve } from 'node:path';
import type { Command } from 'commander';
import { readTrialRequest } from '../../config/trial-request.ts';
import type { CommandScope } from '../command-scope.ts';
import { runAndReport } from './run.ts';

interface StartFlags {
  readonly config: string;
  readonly trialName?: string;
  readonly trialsDir?: string;
  readonly json?: boolean;
  readonly allowUnsandboxed?: boolean;
}

export function addTrialStartCommand(
  parent: Command,
  run: (action: (scope: CommandScope) => Promise<number>) => Promise<void>,
): void {
  parent
    .command('start')
    .description('run one trial from a trial configuration')
    .requiredOption('-c, --config <FILE>', 'trial configuration (.yaml, .yml or .json)')
    .option('--trial-name <NAME>', 'name of the job folder that holds the trial')
    .option('--trials-dir <DIR>', 'where it goes')
    .option('--json', 'print one JSON document at the end instead of text')
    .option('--allow-unsandboxed', 'let local run plain processes where nothing better works')
    .action((flags: StartFlags) =>
      run(async (scope) => {
        const ports = await scope.ports();
        const config = await readTrialRequest(resolve(flags.config), {
          trialName: flags.trialName ?? null,
          trialsDir: flags.trialsDir ?? null,
        });
        return await runAndReport(scope, {
          config,
          allowUnsandboxed: flags.allowUnsandboxed === true,
          isJson: flags.json === true,
          isSureOf: () => true,
          countFailuresAsZero: false,
          ports,
        });
      }),
    );
}
