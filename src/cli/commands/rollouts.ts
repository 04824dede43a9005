/** `slipway rollouts ls`, `show` and `download`; `slipway callbacks ls` and `replay`. */
import { resolve } from 'node:path';
import type { Command } from 'commander';
import { downloadRollout } from '../../app/download-rollout.ts';
import type { CommandScope } from '../command-scope.ts';
import { exitCodes } from '../exit-codes.ts';
import { plainText } from '../plain-text.ts';
import { downloadedText, rolloutsText, rolloutText } from '../rollout-text.ts';
import { addServerOptions, printJson, serverClient, type ServerFlags } from '../server-command.ts';
import { renderTable } from '../table.ts';
import { countArgument } from './status.ts';

type Run = (action: (scope: CommandScope) => Promise<number>) => Promise<void>;

const largestPage = 500;

interface ListFlags extends ServerFlags {
  readonly state?: readonly string[];
  readonly prefix?: string;
  readonly tenant?: string;
  readonly limit?: number;
}

const collect = (value: string, previous: readonly string[] | undefined): readonly string[] => [
  ...(previous ?? []),
  ...value.split(','),
];

export function addRolloutsCommands(parent: Command, run: Run): void {
  addServerOptions(parent.command('ls').description('list rollouts, newest first'))
    .option('--state <STATE>', 'queued, running, grading, success, failure, cancelled', collect)
    .option('--prefix <TEXT>', 'only ids that begin with it')
    .option('--tenant <NAME>', 'only rollouts of this tenant')
    .option('--limit <N>', 'at most so many (default: 100)', countArgument)
    .action((flags: ListFlags) => run((scope) => list(scope, flags)));

  addServerOptions(
    parent
      .command('show')
      .description('show one rollout: outcome, callbacks, files')
      .argument('<ID>', 'rollout'),
  ).action((id: string, flags: ServerFlags) =>
    run(async (scope) => {
      const { clock } = await scope.ports();
      const client = await serverClient(scope, flags);
      const rollout = await client.rollout(id, scope.signal);
      const { files } = await client.files(id, scope.signal);
      if (flags.json === true) printJson(scope, { rollout, files });
      else scope.terminal.out(rolloutText(rollout, files, clock.now()));
      return exitCodes.ok;
    }),
  );

  addServerOptions(
    parent
      .command('download')
      .description('download the files of a rollout; what broke off goes on where it ended')
      .argument('<ID>', 'rollout')
      .argument('[DIR]', 'folder for them (default: a folder named after the rollout)'),
  )
    .option('--path <PATH>', 'only this file or folder (repeatable)', collect)
    .action((id: string, dir: string | undefined, flags: DownloadFlags) =>
      run((scope) => download(scope, { id, dir, flags })),
    );
}

async function list(scope: CommandScope, flags: ListFlags): Promise<number> {
  const client = await serverClient(scope, flags);
  const { state, prefix, tenant } = flags;
  const filter = {
    ...(state !== undefined && { states: state }),
    ...(prefix !== undefined && { prefix }),
    ...(tenant !== undefined && { tenant }),
  };
  let missing = flags.limit ?? 100;
  let after: string | null = null;
  const rollouts = [];
  do {
    const page = await client.rollouts(
      { ...filter, limit: Math.min(missing, largestPage), ...(after !== null && { after }) },
      scope.signal,
    );
    rollouts.push(...page.rollouts);
    missing -= page.rollouts.length;
    after = page.next_after;
  } while (after !== null && missing > 0);
  if (flags.json === true) printJson(scope, { rollouts });
  else scope.terminal.out(rolloutsText(rollouts));
  return exitCodes.ok;
}

interface DownloadFlags extends ServerFlags {
  readonly path?: readonly string[];
}

async function download(
  scope: CommandScope,
  asked: { readonly id: string; readonly dir: string | undefined; readonly flags: DownloadFlags },
): Promise<number> {
  const { id, flags } = asked;
  const { terminal, signal } = scope;
  const { machine } = await scope.ports();
  const client = await serverClient(scope, flags);
  // An id may hold anything but slashes; a name that begins with a dot would be hidden.
  const dir = resolve(machine.cwd, asked.dir ?? `./${id.replace(/^\./, '_')}`);
  const files = await downloadRollout(
    {
      ...{ id, dir, signal, only: flags.path ?? [] },
      onFile: ({ path, state }) => {
        if (flags.json !== true) terminal.out(`${state} ${plainText(path)}`);
      },
    },
    client,
  );
  if (flags.json === true)
    printJson(scope, {
      dir,
      files: files.map(({ path, sizeBytes, state }) => ({ path, size_bytes: sizeBytes, state })),
    });
  else
    terminal.out(
      downloadedText(
        files.length,
        files.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0),
        dir,
      ),
    );
  return exitCodes.ok;
}

export function addCallbacksCommands(parent: Command, run: Run): void {
  addServerOptions(
    parent
      .command('ls')
      .alias('dead')
      .description('list callbacks that nobody took: dead letters, oldest first'),
  ).action((flags: ServerFlags) =>
    run(async (scope) => {
      const client = await serverClient(scope, flags);
      const callbacks = [];
      let after: number | null = 0;
      while (after !== null) {
        const page: Awaited<ReturnType<typeof client.deadCallbacks>> = await client.deadCallbacks(
          after,
          scope.signal,
        );
        callbacks.push(...page.callbacks);
        after = page.next_after;
      }
      if (flags.json === true) printJson(scope, { callbacks });
      else if (callbacks.length === 0) scope.terminal.out('no dead letters');
      else
        scope.terminal.out(
          renderTable(
            ['key', 'rollout', 'channel', 'receiver', 'attempts', 'last error'],
            callbacks.map(({ key, rollout_id, channel, receiver, attempts, last_error }) => [
              ...[key, rollout_id, channel, receiver, attempts, last_error],
            ]),
          ),
        );
      return exitCodes.ok;
    }),
  );
  addServerOptions(
    parent
      .command('replay')
      .description('deliver dead letters again: same bytes, same idempotency key')
      .argument('<KEY...>', 'keys, as ls prints them'),
  ).action((keys: string[], flags: ServerFlags) =>
    run(async (scope) => {
      const client = await serverClient(scope, flags);
      const callbacks = [];
      for (const key of keys) callbacks.push(await client.replay(key, scope.signal));
      if (flags.json === true) printJson(scope, { callbacks });
      else
        for (const { key, rollout_id, channel } of callbacks)
          scope.terminal.out(`${key}: ${channel} callback of ${plainText(rollout_id)} is pending`);
      return exitCodes.ok;
    }),
  );
}
