import { readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { LinkedAbort } from '../../../core/linked-abort.ts';
import type { SandboxFolder } from '../sandbox-folder.ts';
import { spawnServing, stoppable, untilReady, type HostChild } from './user-network.ts';

const pollMs = 2;
const listening = '0A';

/**
 * A listener on the loopback of a sandbox's network namespace that passes each connection to a unix socket of the host. It runs outside
 * of the sandbox's other namespaces, so nothing in the sandbox can see or touch it, and dies when this process does.
 */
export async function startLoopbackForwarder(
  folder: SandboxFolder,
  options: {
    readonly initPid: number;
    readonly hasUserNamespace: boolean;
    readonly port: number;
    /** Name of the socket in the sandbox's folder of sockets. */
    readonly socket: string;
    readonly signal: AbortSignal;
  },
): Promise<HostChild> {
  const child = spawnServing(folder, {
    file: 'setpriv',
    args: [
      ...['--pdeathsig', 'KILL', '--', 'nsenter', `--net=/proc/${options.initPid}/ns/net`],
      ...(options.hasUserNamespace
        ? [`--user=/proc/${options.initPid}/ns/user`, '--preserve-credentials']
        : []),
      ...['socat', '-lp', folder.dir],
      `TCP-LISTEN:${options.port},bind=127.0.0.1,fork,reuseaddr,backlog=128,max-children=512`,
      `UNIX-CONNECT:${options.socket}`,
    ],
    stdio: ['ignore', 'ignore', 'pipe'],
    cwd: folder.sockets, // socket paths end at 108 bytes
  });
  using poll = new LinkedAbort([options.signal]);
  try {
    await untilReady(child, {
      signal: options.signal,
      what: `forwarder for port ${options.port}`,
      isReady: untilListening(options, poll.signal),
    });
  } finally {
    poll.abort('ready or given up');
  }
  return stoppable(child);
}

/** Looks at the namespace's own table of sockets: a trial connection would reach the endpoint. */
async function untilListening(
  options: { readonly initPid: number; readonly port: number },
  signal: AbortSignal,
): Promise<void> {
  const port = options.port.toString(16).toUpperCase().padStart(4, '0');
  const row = new RegExp(`^\\s*\\d+: 0100007F:${port} [0-9A-F:]+ ${listening} `, 'm');
  while (!signal.aborted) {
    if (row.test(socketTable(options.initPid))) return;
    await delay(pollMs);
  }
}

function socketTable(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/net/tcp`, 'latin1');
  } catch {
    return '';
  }
}
