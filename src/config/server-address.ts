/** Which server the commands talk to that look at one, and with which key. */
import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { messageOf, RolloutError } from '../core/errors.ts';
import type { Machine } from './machine.ts';

export interface ServerAddress {
  /** Without a slash at its end; may hold a key in its path. */
  readonly url: string;
  /** null = none is sent. */
  readonly key: string | null;
}

export interface ServerAddressFlags {
  readonly url?: string;
  readonly keyFile?: string;
}

export const defaultServerUrl = 'http://127.0.0.1:8000';

/** Flags over `SLIPWAY_URL` and `SLIPWAY_KEY` over the default. CONFIG_INVALID for what is no http(s) address, and a file without a key. */
export async function readServerAddress(
  flags: ServerAddressFlags,
  { variables, cwd }: Machine,
): Promise<ServerAddress> {
  const named = flags.url ?? variables['SLIPWAY_URL'] ?? '';
  const url = (named === '' ? defaultServerUrl : named).replace(/\/+$/, '');
  const parsed = URL.parse(url);
  if (parsed === null || !/^https?:$/.test(parsed.protocol))
    throw refused(
      flags.url === undefined ? 'SLIPWAY_URL' : '--url',
      'is not an http(s) address',
      `Write it as ${defaultServerUrl}.`,
    );
  if (flags.keyFile === undefined) return { url, key: (variables['SLIPWAY_KEY'] ?? '') || null };
  const path = resolve(cwd, flags.keyFile);
  const text = await readFile(path, 'utf8').catch((error: unknown) => {
    throw refused('--key-file', messageOf(error), 'Name a file that holds the key.');
  });
  const key = text
    .split(/\r?\n/)
    .map((line) => line.trim())
    .find((line) => line !== '' && !line.startsWith('#'));
  if (key === undefined)
    throw refused('--key-file', `${path} holds no key`, 'Write the key into it.');
  return { url, key };
}

function refused(field: string, message: string, remedy: string): RolloutError {
  return new RolloutError('CONFIG_INVALID', message, { phase: 'config', field, remedy });
}
