/** `slipway sessions verify`. */
import { InvalidArgumentError, type Command } from 'commander';
import { familyNames, verifySessions } from '../../app/verify-sessions.ts';
import type { CommandScope } from '../command-scope.ts';
import { exitCodes } from '../exit-codes.ts';

type Run = (action: (scope: CommandScope) => Promise<number>) => Promise<void>;

interface Flags {
  readonly tokenizer: string;
  readonly family: string;
  readonly template?: string;
  readonly conversations: number;
  readonly seed: number;
  readonly json?: boolean;
}

/** Breaks that are printed; `--json` has all. */
const shownBreaks = 5;

export function addVerifyCommand(parent: Command, run: Run): void {
  parent
    .command('verify')
    .description('prove for a checkpoint that histories stay append-only and token-exact')
    .requiredOption('--tokenizer <DIR>', 'folder of the checkpoint')
    .requiredOption('--family <NAME>', familyNames.join(', '))
    .option('--template <FILE>', "a chat template in place of the checkpoint's own")
    .option('--conversations <N>', 'how many random conversations are played', count, 200)
    .option('--seed <N>', 'of the conversations', count, 1)
    .option('--json', 'print a JSON document')
    .action((flags: Flags) => run((scope) => verify(scope, flags)));
}

function count(text: string): number {
  if (!/^\d{1,7}$/.test(text)) throw new InvalidArgumentError('A whole number is needed.');
  return Number(text);
}

async function verify({ terminal }: CommandScope, flags: Flags): Promise<number> {
  const { tokenizer, family, template, seed, conversations } = flags;
  const report = await verifySessions({
    ...{ tokenizer, family, templateFile: template ?? null, seed, conversations },
  });
  const { breaks, turns, equal, respelled } = report;
  const isSound = breaks.length === 0 && turns > 0;
  if (flags.json === true)
    terminal.out(JSON.stringify({ schema_version: 1, verified: isSound, ...report }, null, 2));
  else {
    terminal.out(
      `${isSound ? '✓' : '✗'} ${family}: ${conversations} conversations, ${turns} turns, ` +
        `${equal} equal a render from scratch, ${respelled} in other ids of the same text, ` +
        `${breaks.length} conversations break`,
    );
    for (const { conversation, message, kind, why } of breaks.slice(0, shownBreaks))
      terminal.out(`  conversation ${conversation}, message ${message}: ${kind}: ${why}`);
  }
  return isSound ? exitCodes.ok : exitCodes.failed;
}
