/** What every command has that talks to a running server. */
import type { Command } from 'commander';
import { ServerClient } from '../app/server-client.ts';
import { readServerAddress, defaultServerUrl } from '../config/server-address.ts';
import type { CommandScope } from './command-scope.ts';

export interface ServerFlags {
  readonly url?: string;
  readonly keyFile?: string;
  readonly json?: boolean;
}

export function addServerOptions(command: Command): Command {
  return command
    .option(
      '--url <URL>',
      `control address of the server (SLIPWAY_URL; default: ${defaultServerUrl})`,
    )
    .option('--key-file <FILE>', 'file that holds the key; else SLIPWAY_KEY')
    .option('--json', 'print a JSON document');
}

export async function serverClient(scope: CommandScope, flags: ServerFlags): Promise<ServerClient> {
  const { machine } = await scope.ports();
  return new ServerClient(await readServerAddress(flags, machine), { fetch });
}

export function printJson({ terminal }: CommandScope, document: object): void {
  terminal.out(JSON.stringify({ schema_version: 1, ...document }, null, 2));
}
