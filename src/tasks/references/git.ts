import { tmpdir } from 'node:os';
import { attribute, RolloutError } from '../../core/errors.ts';
import { runProcess } from './child-process.ts';
import type { GitRemote } from './git-url.ts';

export interface GitOptions {
  /** Path of git; found in PATH by default. */
  readonly executable?: string;
  /** The host's process variables: PATH, HOME, proxies, git's own settings. */
  readonly variables: Readonly<Record<string, string | undefined>>;
  /** Limit of one git command. Default 10 min. */
  readonly timeoutMs?: number;
}

export interface GitCommand {
  /** The remote that the command may talk to. */
  readonly remote: GitRemote;
  readonly cwd?: string;
  readonly input?: string;
  readonly timeoutMs?: number;
  readonly signal: AbortSignal;
}

/** What would make git look at another repository than the one we name, or write where we do not look. */
const foreignVariables = [
  'GIT_DIR',
  'GIT_WORK_TREE',
  'GIT_INDEX_FILE',
  'GIT_OBJECT_DIRECTORY',
  'GIT_ALTERNATE_OBJECT_DIRECTORIES',
  'GIT_COMMON_DIR',
  'GIT_NAMESPACE',
  'GIT_PREFIX',
  'GIT_TRACE',
  'GIT_TRACE_CURL',
  'GIT_CURL_VERBOSE',
  'SSH_ASKPASS',
];

/** Nothing of a fetched repository or of the user's templates may run, and files arrive byte for byte. */
const fixedSettings = [
  'core.hooksPath=/dev/null',
  'core.fsmonitor=false',
  'core.autocrlf=false',
  'core.symlinks=true',
  'submodule.recurse=false',
  'fetch.recurseSubmodules=false',
  'advice.detachedHead=false',
  'gc.auto=0',
  'maintenance.auto=false',
].flatMap((setting) => ['-c', setting]);

/** Prints the credentials from variables: the program's arguments hold their names only. */
const credentialHelper =
  '!f() { test "$1" = get && printf "username=%s\\npassword=%s\\n" "$SLIPWAY_GIT_USERNAME" "$SLIPWAY_GIT_PASSWORD"; }; f';

const defaultTimeoutMs = 10 * 60_000;
const detailLines = 8;
/** The system's words for ENOSPC and EDQUOT; git has no exit code of its own for them. */
const noSpace = /No space left on device|Disk quota exceeded/;

/** The git program: never asks, never runs code of the repository, is ended as a whole, and tells no address in its errors. */
export class Git {
  readonly #executable: string;
  readonly #variables: Readonly<Record<string, string | undefined>>;
  readonly #timeoutMs: number;

  constructor(options: GitOptions) {
    this.#executable = options.executable ?? 'git';
    const variables = { ...options.variables };
    for (const name of foreignVariables) variables[name] = undefined;
    this.#variables = {
      GIT_SSH_COMMAND: 'ssh -o BatchMode=yes',
      ...variables,
      GIT_TERMINAL_PROMPT: '0',
      GCM_INTERACTIVE: 'never',
      GIT_OPTIONAL_LOCKS: '0',
      LC_ALL: 'C',
    };
    this.#timeoutMs = options.timeoutMs ?? defaultTimeoutMs;
  }

  /** Standard output of a successful command. Throws GIT_FAILED otherwise, with git's last lines as detail, addresses removed. */
  async run(args: readonly [string, ...string[]], command: GitCommand): Promise<string> {
    const { remote } = command;
    const what = `git ${args[0]} (${remote.place})`;
    const timeoutMs = command.timeoutMs ?? this.#timeoutMs;
    const result = await this.#spawn(args, command, what, timeoutMs);
    if (result.exitCode === 0) return result.stdout;
    if (noSpace.test(result.stderr))
      throw new RolloutError('DISK_FULL', `${what}: no space left`, {
        phase: 'resolve',
        remedy: 'Free disk space on the host, then run the job again: it resumes.',
      });
    throw new RolloutError(
      'GIT_FAILED',
      `${what} failed with ${result.exitCode === null ? 'a signal' : `exit code ${result.exitCode}`}`,
      {
        phase: 'resolve',
        field: 'git_url',
        detail: withoutAddresses(result.stderr, remote),
        remedy: 'Check that the repository and the commit exist and that git may read them here.',
      },
    );
  }

  /** Whether git-lfs is installed. */
  async hasLfs(command: GitCommand): Promise<boolean> {
    const result = await this.#spawn(['lfs', 'version'], command, 'git lfs', this.#timeoutMs);
    return result.exitCode === 0;
  }

  async #spawn(args: readonly string[], command: GitCommand, what: string, timeoutMs: number) {
    const { remote } = command;
    try {
      return await runProcess(
        [this.#executable, ...fixedSettings, ...credentialSettings(remote), ...args],
        {
          cwd: command.cwd ?? tmpdir(),
          variables: { ...this.#variables, ...remoteVariables(remote) },
          input: command.input ?? '',
          timeoutMs,
          timeoutReason: () =>
            new RolloutError('GIT_FAILED', `${what} took longer than ${timeoutMs} ms`, {
              phase: 'resolve',
              field: 'git_url',
            }),
          signal: command.signal,
        },
      );
    } catch (error) {
      command.signal.throwIfAborted();
      if (isMissingProgram(error))
        throw new RolloutError('GIT_FAILED', 'git is not installed', {
          phase: 'resolve',
          remedy: 'Install git, or use local task folders.',
          retryable: false,
          cause: error,
        });
      throw attribute(error, 'GIT_FAILED', 'resolve', what);
    }
  }
}

function isMissingProgram(error: unknown): boolean {
  return error instanceof Error && (error as NodeJS.ErrnoException).code === 'ENOENT';
}

function credentialSettings(remote: GitRemote): readonly string[] {
  if (remote.credentials === null) return [];
  const key = `credential.${remote.credentials.origin}.helper`;
  return ['-c', `${key}=`, '-c', `${key}=${credentialHelper}`];
}

function remoteVariables(remote: GitRemote): Readonly<Record<string, string>> {
  const allowed = remote.transport === 'file' ? 'file' : 'https:http:ssh:git';
  return {
    GIT_ALLOW_PROTOCOL: allowed,
    ...(remote.credentials === null
      ? {}
      : {
          SLIPWAY_GIT_USERNAME: remote.credentials.username,
          SLIPWAY_GIT_PASSWORD: remote.credentials.password,
        }),
  };
}

/** The last lines of what git said, without anything that looks like an address or is a known secret. */
function withoutAddresses(text: string, remote: GitRemote): string {
  const secrets = [
    remote.written,
    remote.url,
    ...(remote.credentials === null
      ? []
      : [remote.credentials.username, remote.credentials.password]),
  ].filter((secret) => secret !== '');
  let clean = text;
  for (const secret of secrets) clean = clean.replaceAll(secret, '<repository>');
  clean = clean.replaceAll(/[a-z][a-z0-9+.-]*:\/\/[^\s'"]+/gi, '<repository>');
  return clean.trim().split('\n').slice(-detailLines).join('\n');
}
