/**
 * Programs of agents on this machine: installed by npm into folders that are known by what was asked for, appear complete and are never changed, so that
 * sandboxes may see them while they live. Nothing of a package is executed: no install scripts run.
 */
import { createHash, randomUUID } from 'node:crypto';
import { mkdir, readdir, rename, rm, stat } from 'node:fs/promises';
import path from 'node:path';
import { messageOf, RolloutError } from '../../core/errors.ts';
import type { LockPort } from '../../core/lock.ts';
import { openToAll } from '../../core/open-to-all.ts';
import { SingleFlight } from '../../core/single-flight.ts';
import type { AgentProgram, AgentPrograms } from '../agent.ts';

/** Runs a program of this machine to its end; rejects with the reason of the signal, or when it cannot be started. */
export type ProgramRunner = (
  argv: readonly [string, ...string[]],
  options: {
    readonly cwd: string;
    readonly variables: Readonly<Record<string, string | undefined>>;
    readonly signal: AbortSignal;
  },
) => Promise<{
  readonly exitCode: number | null;
  readonly stdout: string;
  readonly stderr: string;
}>;

export interface ProgramFolderParts {
  /** Absolute; made when it is needed. */
  readonly dir: string;
  readonly locks: LockPort;
  readonly run: ProgramRunner;
  /** Of this process: npm finds its settings by them. */
  readonly variables: Readonly<Record<string, string | undefined>>;
  /** For connections to the registry; null = what the system trusts. */
  readonly extraCaBundle: string | null;
}

/** Others may be installing for as long. */
const waitMs = 10 * 60_000;
const lastLines = 5;
const unfinished = '.partial-';

export class ProgramFolder implements AgentPrograms {
  readonly #parts: ProgramFolderParts;
  readonly #installing = new SingleFlight<string>();

  constructor(parts: ProgramFolderParts) {
    this.#parts = parts;
  }

  async folderOf(program: AgentProgram, signal: AbortSignal): Promise<string> {
    const dir = path.join(this.#parts.dir, folderName(program));
    if (await isThere(dir)) return dir;
    return await this.#installing.run(dir, signal, async (shared) => {
      await mkdir(this.#parts.dir, { recursive: true });
      const lock = await this.#parts.locks.acquire(`${dir}.lock`, {
        timeoutMs: waitMs,
        signal: shared,
      });
      try {
        if (!(await isThere(dir))) await this.#install(program, dir, shared);
        return dir;
      } finally {
        lock.release();
      }
    });
  }

  async #install(program: AgentProgram, dir: string, signal: AbortSignal): Promise<void> {
    // What a process that died had begun.
    for (const name of await readdir(this.#parts.dir))
      if (name.startsWith(`${path.basename(dir)}${unfinished}`))
        await rm(path.join(this.#parts.dir, name), { recursive: true, force: true });
    const target = `${dir}${unfinished}${randomUUID()}`;
    try {
      await mkdir(target);
      await this.#npm(program, target, signal);
      await openToAll(target);
      await rename(target, dir);
    } finally {
      await rm(target, { recursive: true, force: true });
    }
  }

  async #npm(program: AgentProgram, cwd: string, signal: AbortSignal): Promise<void> {
    const { variables, extraCaBundle } = this.#parts;
    const flags = ['--ignore-scripts', '--no-audit', '--no-fund', '--no-save', '--loglevel=error'];
    const argv = ['npm', 'install', ...flags, '--prefix', cwd, ...program.packages] as const;
    const ended = await this.#parts
      .run(argv, {
        cwd,
        variables: {
          ...variables,
          ...(extraCaBundle !== null && { npm_config_cafile: extraCaBundle }),
        },
        signal,
      })
      .catch((error: unknown) => {
        signal.throwIfAborted();
        throw refused(program, `npm cannot be started: ${messageOf(error)}`);
      });
    if (ended.exitCode === 0) return;
    const lines = ended.stderr.split('\n').filter((line) => line.trim() !== '');
    throw refused(
      program,
      `npm ended with ${String(ended.exitCode)}`,
      lines.slice(-lastLines).join('\n'),
    );
  }
}

/** By content: another version, or another processor, is another folder. */
function folderName({ name, packages }: AgentProgram): string {
  const asked = JSON.stringify([packages, process.platform, process.arch]);
  return `${name}-${createHash('sha256').update(asked).digest('hex').slice(0, 16)}`;
}

async function isThere(dir: string): Promise<boolean> {
  return (await stat(dir).catch(() => null)) !== null;
}

function refused(program: AgentProgram, why: string, detail = ''): RolloutError {
  const message = `the program of the agent (${program.packages.join(', ')}) cannot be installed: ${why}`;
  return new RolloutError('AGENT_SETUP_FAILED', message, {
    phase: 'agent-setup',
    remedy:
      'Have npm in PATH and its registry within reach for the first run; later runs need neither.',
    ...(detail !== '' && { detail }),
  });
}
