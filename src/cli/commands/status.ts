/** `slipway status`, `cancel` and `doctor`: a running server as its operator sees it. */
import { InvalidArgumentError, type Command } from 'commander';
import type { CancelBody } from '../../app/server-client.ts';
import { RolloutError } from '../../core/errors.ts';
import type { CommandScope } from '../command-scope.ts';
import { exitCodes } from '../exit-codes.ts';
import { findingsText, receiptsText } from '../rollout-text.ts';
import { addServerOptions, printJson, serverClient, type ServerFlags } from '../server-command.ts';
import { statusText } from '../status-text.ts';

type Run = (action: (scope: CommandScope) => Promise<number>) => Promise<void>;

const liveStates = ['queued', 'running', 'grading'];
const mostRows = 200;
const watchEveryMs = 1_000;

export function addStatusCommand(parent: Command, run: Run): void {
  addServerOptions(
    parent.command('status').description('show who waits, who runs and what each waits for'),
  )
    .option('--watch', 'show it again every second until it is interrupted')
    .option('--tenant <NAME>', 'only rollouts of this tenant')
    .option('--limit <N>', `rollouts that are shown (default: ${mostRows})`, countArgument)
    .action((flags: StatusFlags) => run((scope) => showStatus(scope, flags)));
}

interface StatusFlags extends ServerFlags {
  readonly watch?: boolean;
  readonly tenant?: string;
  readonly limit?: number;
}

async function showStatus(scope: CommandScope, flags: StatusFlags): Promise<number> {
  const { terminal, signal } = scope;
  const { clock } = await scope.ports();
  const client = await serverClient(scope, flags);
  const show = async (): Promise<void> => {
    const [admission, { rollouts }] = await Promise.all([
      client.admission(signal),
      client.rollouts(
        {
          states: liveStates,
          limit: Math.min(flags.limit ?? mostRows, 500),
          ...(flags.tenant !== undefined && { tenant: flags.tenant }),
        },
        signal,
      ),
    ]);
    if (flags.json === true) printJson(scope, { admission, rollouts });
    else {
      const text = statusText(admission, rollouts, clock.now());
      const isRedrawn = flags.watch === true && terminal.isInteractive;
      terminal.out(isRedrawn ? `\x1b[H\x1b[2J${text}` : text);
    }
  };
  await show();
  while (flags.watch === true) {
    await clock.sleep(watchEveryMs, signal);
    await show();
  }
  return exitCodes.ok;
}

export function countArgument(text: string): number {
  if (!/^[1-9]\d{0,8}$/.test(text)) throw new InvalidArgumentError('Give a whole number from 1.');
  return Number(text);
}

interface CancelFlags extends ServerFlags {
  readonly prefix?: string;
  readonly all?: boolean;
}

export function addCancelCommand(parent: Command, run: Run): void {
  addServerOptions(
    parent
      .command('cancel')
      .description('cancel rollouts, and say what was confirmed gone')
      .argument('[ID...]', 'rollouts; one that has not come yet is refused when it comes'),
  )
    .option('--prefix <TEXT>', 'every live rollout whose id begins with it')
    .option('--all', 'every live rollout')
    .action((ids: string[], flags: CancelFlags) =>
      run(async (scope) => {
        const body = cancelBody(ids, flags);
        const client = await serverClient(scope, flags);
        const { receipts } = await client.cancel(body, scope.signal);
        if (flags.json === true) printJson(scope, { receipts });
        else scope.terminal.out(receiptsText(receipts));
        return receipts.every((receipt) => receipt.is_complete) ? exitCodes.ok : exitCodes.failed;
      }),
    );
}

function cancelBody(ids: readonly string[], { prefix, all }: CancelFlags): CancelBody {
  const selectors = [ids.length > 0, prefix !== undefined, all === true].filter(Boolean).length;
  if (selectors !== 1)
    throw new RolloutError('CONFIG_INVALID', 'exactly one of ID..., --prefix and --all is needed', {
      phase: 'config',
      field: 'cancel',
      remedy: 'Name rollouts, or a beginning of their ids, or all.',
    });
  if (prefix !== undefined) return { prefix };
  return all === true ? { all } : { ids };
}

export function addDoctorCommand(parent: Command, run: Run): void {
  addServerOptions(
    parent
      .command('doctor')
      .description('say why a rollout is not moving: who has to act, since when, and what to do')
      .argument('[ID]', 'a rollout (default: the server and every rollout that is stuck)'),
  ).action((id: string | undefined, flags: ServerFlags) =>
    run(async (scope) => {
      const { clock } = await scope.ports();
      const client = await serverClient(scope, flags);
      const { findings } = await client.doctor(id ?? null, scope.signal);
      if (flags.json === true) printJson(scope, { findings });
      else scope.terminal.out(findingsText(findings, clock.now()));
      return exitCodes.ok;
    }),
  );
}
