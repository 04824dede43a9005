/**
 * Programs of agents on this machine: installed by npm or pip into folders that are known by what was asked for, appear complete and are never changed, so
 * that sandboxes may see them while they live. Nothing of a package is executed: no install scripts run.
 */
import { createHash, randomUUID } from 'node:crypto';
import { mkdir, readdir, rename, rm, stat } from 'node:fs/promises';
import path from 'node:path';
import type { LockPort } from '../../core/lock.ts';
import { openToAll } from '../../core/open-to-all.ts';
import { SingleFlight } from '../../core/single-flight.ts';
import type { AgentProgram, AgentPrograms } from '../agent.ts';
import { installFromNpm } from './npm-packages.ts';
import type { InstallerParts } from './program-runner.ts';
import { installFromPypi } from './python/pypi-packages.ts';

export interface ProgramFolderParts extends InstallerParts {
  /** Absolute; made when it is needed. */
  readonly dir: string;
  readonly locks: LockPort;
}

/** Others may be installing for as long. */
const waitMs = 10 * 60_000;
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
      await this.#fill(program, target, signal);
      await openToAll(target);
      await rename(target, dir);
    } finally {
      await rm(target, { recursive: true, force: true });
    }
  }

  async #fill(program: AgentProgram, dir: string, signal: AbortSignal): Promise<void> {
    const { python } = program;
    if (python === undefined) await installFromNpm(program, this.#parts, { dir, signal });
    else await installFromPypi({ ...program, python }, this.#parts, { dir, signal });
  }
}

/** By content: another version, or another processor, is another folder. */
function folderName({ name, packages, python }: AgentProgram): string {
  const lock = python === undefined ? [] : [python.lock];
  const asked = JSON.stringify([packages, process.platform, process.arch, ...lock]);
  return `${name}-${createHash('sha256').update(asked).digest('hex').slice(0, 16)}`;
}

async function isThere(dir: string): Promise<boolean> {
  return (await stat(dir).catch(() => null)) !== null;
}
