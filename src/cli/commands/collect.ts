/** `slipway collect`: groups for a trainer from a rollout server, as lines of JSON. */
import path from 'node:path';
import type { Command } from 'commander';
import { collectBatches } from '../../app/collect.ts';
import { readCollectConfig } from '../../config/collect/collect-config.ts';
import type { Logger } from '../../core/logger.ts';
import { batchText, CollectProgress, collectPlanText } from '../collect-text.ts';
import type { CommandScope } from '../command-scope.ts';
import { exitCodes } from '../exit-codes.ts';
import { openLineOutput } from '../line-output.ts';

interface CollectFlags {
  readonly output?: string;
  readonly batches?: number;
  readonly quiet?: boolean;
}

export function addCollectCommand(
  parent: Command,
  run: (action: (scope: CommandScope) => Promise<number>) => Promise<void>,
): void {
  parent
    .command('collect')
    .description('collect groups of rollouts for a trainer, as lines of JSON')
    .argument('<CONFIG>', 'TOML file of the collection')
    .option('-o, --output <FILE>', 'append the lines to this file instead of printing them')
    .option('--batches <N>', 'how many batches (default: as the file says)', (text) =>
      /^[1-9]\d{0,8}$/.test(text) ? Number(text) : Number.NaN,
    )
    .option('-q, --quiet', 'tell nothing but warnings and errors on standard error')
    .action((config: string, flags: CollectFlags) => run((scope) => collect(scope, config, flags)));
}

/** What the agents and the abort have to say goes to the person who waits. */
function loggerOf(say: (text: string) => void): Logger {
  return {
    log: (level, message) => {
      if (level === 'warn' || level === 'error') say(`${level}: ${message}`);
    },
  };
}

async function collect(scope: CommandScope, file: string, flags: CollectFlags): Promise<number> {
  const { terminal, signal } = scope;
  const ports = await scope.ports();
  const config = await readCollectConfig(file, flags, ports.machine);
  const say = (text: string): void => terminal.err(`${text}\n`);
  const tell = flags.quiet === true ? () => undefined : say;
  const output = flags.output === undefined ? null : path.resolve(ports.machine.cwd, flags.output);
  await using lines = await openLineOutput(output, terminal);
  const progress = new CollectProgress(tell);
  try {
    const batches = await collectBatches(
      {
        ...{ config, signal, logger: loggerOf(say), observe: (event) => progress.see(event) },
        onBegin: (plan) => {
          tell(collectPlanText(plan));
          progress.begin(plan);
        },
        onGroups: (groups) => lines.write(groups),
        onBatch: async (line) => {
          await lines.write([`${JSON.stringify(line)}\n`]);
          tell(batchText(line));
        },
      },
      ports,
    );
    tell(`${batches} ${batches === 1 ? 'batch' : 'batches'} collected`);
    if (config.batches === null || batches === config.batches) return exitCodes.ok;
    say(`the dataset ended before the other ${config.batches - batches}`);
    return exitCodes.failed;
  } catch (error) {
    if (!signal.aborted) throw error;
    tell('interrupted: what ran has been aborted');
    return exitCodes.interrupted;
  } finally {
    progress.end();
  }
}
