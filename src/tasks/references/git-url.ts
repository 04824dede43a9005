/**
 * Addresses of git repositories. Only known transports are taken: `ext::` and the like would run programs, and a leading dash
 * would be an option. A user name and password inside an HTTP address are taken out and travel apart, because arguments of processes
 * are public on a machine.
 */
import { homedir } from 'node:os';
import { posix, resolve } from 'node:path';
import { RolloutError } from '../../core/errors.ts';

export interface GitRemote {
  /** As the user wrote it: key of caches, never for messages. */
  readonly written: string;
  /** What git is given: without user name and password for HTTP. */
  readonly url: string;
  readonly transport: 'https' | 'http' | 'ssh' | 'git' | 'file';
  readonly credentials: GitCredentials | null;
  /** For messages: the host, or `this machine`. */
  readonly place: string;
  readonly hostname: string | null;
  /** Last part of the path without `.git`. */
  readonly repositoryName: string;
}

export interface GitCredentials {
  /** Scheme, host and port that they are for. */
  readonly origin: string;
  readonly username: string;
  readonly password: string;
}

const transports = { 'https:': 'https', 'http:': 'http', 'ssh:': 'ssh', 'git:': 'git' } as const;
const scpLike = /^(?:[A-Za-z0-9_][^@:/\s]*@)?([A-Za-z0-9][A-Za-z0-9.-]*):(?!\/\/|:)(\S+)$/;

/** Throws REFERENCE_INVALID, whose message never repeats the address. */
export function parseGitUrl(text: string, field: string): GitRemote {
  if (text === '' || text.startsWith('-') || /[\0-\x1f\x7f]/.test(text)) throw refused(field);
  if (/^[a-z0-9+.-]+::/i.test(text)) throw refused(field);
  if (/^[a-z][a-z0-9+.-]*:\/\//i.test(text)) return parseUrl(text, field);
  const scp = scpLike.exec(text);
  if (scp?.[1] !== undefined && scp[2] !== undefined)
    return {
      written: text,
      url: text,
      transport: 'ssh',
      credentials: null,
      place: scp[1],
      hostname: scp[1],
      repositoryName: repositoryName(scp[2]),
    };
  if (text.includes(':')) throw refused(field);
  return local(text, resolve(text.replace(/^~(?=\/|$)/, homedir())));
}

function parseUrl(text: string, field: string): GitRemote {
  const url = URL.parse(text);
  if (url === null) throw refused(field);
  if (url.protocol === 'file:') return local(text, text);
  if (!(url.protocol in transports) || url.hostname === '' || url.hostname.startsWith('-'))
    throw refused(field);
  const transport = transports[url.protocol as keyof typeof transports];
  const isHttp = transport === 'http' || transport === 'https';
  const hasCredentials = isHttp && (url.username !== '' || url.password !== '');
  const credentials = hasCredentials
    ? {
        origin: `${url.protocol}//${url.host}`,
        username: percentDecoded(url.username) ?? refuse(field),
        password: percentDecoded(url.password) ?? refuse(field),
      }
    : null;
  if (isHttp) url.username = '';
  url.password = '';
  return {
    written: text,
    url: url.href,
    transport,
    credentials,
    place: url.host,
    hostname: url.hostname,
    repositoryName: repositoryName(url.pathname),
  };
}

function local(written: string, url: string): GitRemote {
  return {
    written,
    url,
    transport: 'file',
    credentials: null,
    place: 'this machine',
    hostname: null,
    repositoryName: repositoryName(url),
  };
}

function repositoryName(path: string): string {
  return posix.basename(path.replace(/\/+$/, '')).replace(/\.git$/, '') || 'repository';
}

/** The address as it was written, but without password, query and fragment, and over HTTP without user name: for files that are kept. */
export function publicGitUrl({ written, transport }: GitRemote): string {
  const url = URL.parse(written);
  if (url === null || transport === 'file') return written;
  const isHttp = transport === 'http' || transport === 'https';
  const secrets = [url.password, url.search, url.hash, isHttp ? url.username : ''];
  if (secrets.every((secret) => secret === '')) return written;
  if (isHttp) url.username = '';
  url.password = '';
  url.search = '';
  url.hash = '';
  return url.href;
}

/** null for text that is not percent-encoded UTF-8. */
export function percentDecoded(text: string): string | null {
  try {
    return decodeURIComponent(text);
  } catch {
    return null;
  }
}

function refuse(field: string): never {
  throw refused(field);
}

function refused(field: string): RolloutError {
  return new RolloutError('REFERENCE_INVALID', 'this is not an address that git may use', {
    phase: 'resolve',
    field,
    remedy: 'Use https://, http://, ssh://, git://, user@host:path, file:// or a path.',
  });
}
