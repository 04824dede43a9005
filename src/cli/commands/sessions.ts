/** `slipway sessions audit` and `samples`. */
import { InvalidArgumentError, type Command } from 'commander';
import { auditSamples, type AuditedSamples } from '../../app/audit-samples.ts';
import { capturedSamples } from '../../app/captured-samples.ts';
import { isRolloutError } from '../../core/errors.ts';
import type { CommandScope } from '../command-scope.ts';
import { exitCodes } from '../exit-codes.ts';

type Run = (action: (scope: CommandScope) => Promise<number>) => Promise<void>;

export function addSessionsCommands(parent: Command, run: Run): void {
  parent
    .command('audit')
    .description('check the hash chain of exported samples, from the files alone')
    .argument('<FILE...>', 'samples.ndjson of rollouts')
    .option('--json', 'print a JSON document')
    .action((files: string[], flags: { readonly json?: boolean }) =>
      run((scope) => audit(scope, files, { isJson: flags.json === true })),
    );
  parent
    .command('samples')
    .description('print the samples of a rollout, from the model calls in its archive')
    .argument('<FILE>', 'model-calls.steps.ndjson')
    .option('--reward <N>', 'of the rollout', reward)
    .option('--max-tokens <N>', 'of a sample; what is longer is cut', count)
    .option('--train-summaries', 'train what the agent made of its own history, too')
    .option('--keep-retries', 'keep answers that the agent asked for again')
    .action((file: string, flags: SamplesFlags) => run((scope) => samples(scope, file, flags)));
}

interface SamplesFlags {
  readonly reward?: number;
  readonly maxTokens?: number;
  readonly trainSummaries?: boolean;
  readonly keepRetries?: boolean;
}

function reward(text: string): number {
  const value = Number(text);
  if (text.trim() === '' || !Number.isFinite(value))
    throw new InvalidArgumentError('A number is needed.');
  return value;
}

function count(text: string): number {
  if (!/^[1-9]\d{0,8}$/.test(text)) throw new InvalidArgumentError('Give a whole number from 1.');
  return Number(text);
}

async function samples(
  { terminal, signal }: CommandScope,
  file: string,
  flags: SamplesFlags,
): Promise<number> {
  const lines = await capturedSamples(file, {
    ...{ reward: flags.reward ?? null, maxTokens: flags.maxTokens ?? null },
    trainsSummaries: flags.trainSummaries === true,
    keepsRetries: flags.keepRetries === true,
  });
  for (const line of lines) {
    signal.throwIfAborted();
    terminal.out(line.trimEnd());
  }
  return exitCodes.ok;
}

interface FileAudit {
  readonly file: string;
  readonly problem: string | null;
  readonly audited: AuditedSamples | null;
}

/** Every file is looked at, whatever is wrong with those before it. */
async function audit(
  { terminal, signal }: CommandScope,
  files: readonly string[],
  { isJson }: { readonly isJson: boolean },
): Promise<number> {
  const audits: FileAudit[] = [];
  for (const file of files) {
    signal.throwIfAborted();
    const one = await auditFile(file, signal);
    audits.push(one);
    if (isJson) continue;
    if (one.audited === null) terminal.err(`✗ ${file}: ${one.problem ?? ''}`);
    else terminal.out(`✓ ${file}: ${described(one.audited)}`);
  }
  if (isJson) terminal.out(JSON.stringify({ schema_version: 1, files: audits.map(row) }, null, 2));
  return audits.every(({ problem }) => problem === null) ? exitCodes.ok : exitCodes.failed;
}

async function auditFile(file: string, signal: AbortSignal): Promise<FileAudit> {
  try {
    return { file, problem: null, audited: await auditSamples(file, signal) };
  } catch (error) {
    if (!isRolloutError(error, 'SAMPLES_INVALID')) throw error;
    return { file, problem: error.message, audited: null };
  }
}

function described(audited: AuditedSamples): string {
  const { samples, checkedCalls, calls, callsWithoutIds, trainedTokens, tokens, link } = audited;
  const unknown = callsWithoutIds === 0 ? '' : `, ${callsWithoutIds} calls without ids`;
  return (
    `${samples} samples, ${checkedCalls} of ${calls} calls in them${unknown}, ` +
    `${trainedTokens} of ${tokens} tokens trained, chain ${link?.slice(0, 16) ?? 'empty'}`
  );
}

function row({ file, problem, audited }: FileAudit): Readonly<Record<string, unknown>> {
  if (audited === null) return { file, valid: false, problem };
  return {
    ...{ file, valid: true, rollout_id: audited.rolloutId, samples: audited.samples },
    ...{ calls: audited.calls, calls_checked: audited.checkedCalls },
    ...{ calls_without_ids: audited.callsWithoutIds, tokens: audited.tokens },
    ...{ trained_tokens: audited.trainedTokens, link: audited.link },
  };
}
