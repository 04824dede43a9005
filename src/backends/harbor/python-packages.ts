/**
 * Packages for the Python of sandboxes, which may have neither pip nor a network: installed on this machine by pip as wheels for that Python, once for
 * each that is met, into a folder that appears complete. The folder is known by what was asked for; another server of this data folder finds it.
 */
import { randomUUID } from 'node:crypto';
import { mkdir, readdir, rename, rm, stat } from 'node:fs/promises';
import path from 'node:path';
import { z } from 'zod';
import type { Clock } from '../../core/clock.ts';
import { isRolloutError, messageOf, RolloutError } from '../../core/errors.ts';
import { openToAll } from '../../core/open-to-all.ts';
import { SingleFlight } from '../../core/single-flight.ts';
import {
  runnerPackageDir,
  runnerProgram,
  runnerVariables,
  type PythonInterpreter,
} from '../../runner/interpreter.ts';
import { runProcess } from '../../tasks/references/child-process.ts';
import type { Requirements } from './harbor-options.ts';
import { fingerprintOf } from './requirement-files.ts';

const word = z.string().regex(/^[a-z]*$/i);
const number = z.string().regex(/^\d{1,3}(\.\d{1,3})*$/);

/** As `start.py in-sandbox python` tells it: an image may say anything, and two that differ must not share a folder. */
export const sandboxPythonSchema = z.object({
  version: number.regex(/^\d+\.\d+\.\d+$/),
  implementation: word.max(20),
  abi_flags: word.max(8),
  machine: z.string().regex(/^\w{1,40}$/),
  libc: z.tuple([word.max(20), z.union([number, z.literal('')])]),
});
export type SandboxPython = z.output<typeof sandboxPythonSchema>;

export interface PackagesParts {
  /** Absolute; the folders are in `packages/` of it. */
  readonly dataDir: string;
  /** Has pip. */
  readonly interpreter: PythonInterpreter;
  readonly variables: Readonly<Record<string, string | undefined>>;
  readonly clock: Clock;
}

const installMs = 10 * 60_000;
/** What could not be installed is not tried again for as long: every rollout would begin with a run of pip. */
const failureMs = 60_000;
const lastLines = 5;
const longestDetail = 2_000;
const longestReason = 300;
const noPip = 3;

export class PythonPackages {
  readonly #requirements: Requirements;
  readonly #parts: PackagesParts;
  readonly #installing = new SingleFlight<string>();
  readonly #failed = new Map<string, { readonly error: RolloutError; readonly atMs: number }>();
  #fingerprint = '';

  constructor(requirements: Requirements, parts: PackagesParts) {
    this.#requirements = requirements;
    this.#parts = parts;
  }

  /** Before the first `install`: reads what is asked for, and removes what was installed for something else. CONFIG_INVALID. */
  async open(): Promise<void> {
    this.#fingerprint = await fingerprintOf(this.#requirements);
    for (const name of await readdir(this.#dir).catch((): string[] => []))
      if (!name.startsWith(`${this.#fingerprint}-`) || name.includes(unfinished))
        await rm(path.join(this.#dir, name), { recursive: true, force: true });
  }

  /** Resolves with the folder. REQUIREMENTS_FAILED with the last words of pip, or the reason of `signal`. */
  async install(python: SandboxPython, signal: AbortSignal): Promise<string> {
    const { clock } = this.#parts;
    const name = `${this.#fingerprint}-${nameOf(python)}`;
    const dir = path.join(this.#dir, name);
    if (await isThere(dir)) return dir;
    const failed = this.#failed.get(name);
    if (failed !== undefined && clock.monotonicMs() - failed.atMs < failureMs) throw failed.error;
    return await this.#installing.run(name, signal, async (shared) => {
      try {
        await this.#installInto(dir, python, shared);
        return dir;
      } catch (error) {
        if (isRolloutError(error, 'REQUIREMENTS_FAILED'))
          this.#failed.set(name, { error, atMs: clock.monotonicMs() });
        throw error;
      }
    });
  }

  get #dir(): string {
    return path.join(this.#parts.dataDir, 'packages');
  }

  async #installInto(dir: string, python: SandboxPython, signal: AbortSignal): Promise<void> {
    const target = `${dir}${unfinished}${randomUUID()}`;
    try {
      await mkdir(target, { recursive: true });
      await this.#pip(target, python, signal);
      if ((await fingerprintOf(this.#requirements)) !== this.#fingerprint)
        throw refused(python, 'the requirements have changed since they were read: start again');
      await openToAll(target);
      await rename(target, dir).catch(async (error: unknown) => {
        if (!(await isThere(dir))) throw error; // else somebody was faster
      });
    } finally {
      await rm(target, { recursive: true, force: true });
    }
  }

  async #pip(target: string, python: SandboxPython, signal: AbortSignal): Promise<void> {
    const { interpreter, variables } = this.#parts;
    const { file, list, cwd } = this.#requirements;
    const program = path.join(runnerPackageDir, runnerProgram);
    const ended = await runProcess([interpreter.python, '-u', program, 'install'], {
      cwd,
      variables: runnerVariables({ ...interpreter, path: [] }, variables),
      input: JSON.stringify({ target, python, file, requirements: list }),
      timeoutMs: installMs,
      timeoutReason: () => refused(python, `pip has not ended after ${installMs / 60_000} minutes`),
      signal,
    }).catch((error: unknown) => {
      if (isRolloutError(error) || signal.aborted) throw error;
      throw refused(python, `${interpreter.python} cannot be started: ${messageOf(error)}`);
    });
    if (ended.exitCode === 0) return;
    if (ended.exitCode === noPip) throw refused(python, `${interpreter.python} has no pip`);
    const lines = withoutCredentials(ended.stderr)
      .split('\n')
      .filter((line) => line.trim() !== '' && !line.startsWith('[notice]'));
    const reason = lines.findLast((line) => line.startsWith('ERROR:')) ?? lines.at(-1) ?? '';
    const said = lines.slice(-lastLines).join('\n').slice(-longestDetail);
    throw refused(python, reason.slice(0, longestReason), said);
  }
}

const unfinished = '.partial-';

async function isThere(dir: string): Promise<boolean> {
  return (await stat(dir).catch(() => null)) !== null;
}

/** What decides which wheels fit. */
function nameOf({ version, implementation, abi_flags: flags, machine, libc }: SandboxPython) {
  const [major, minor] = version.split('.');
  return [`${implementation}${major}.${minor}${flags}`, machine, libc.join('')].join('-');
}

/** Indexes are named with user and password, or with a token in the query. */
export function withoutCredentials(text: string): string {
  return text
    .replaceAll(/\b([a-z][a-z\d+.-]*:\/\/)[^\s/]*@/gi, '$1[REDACTED]@')
    .replaceAll(/\b([a-z][a-z\d+.-]*:\/\/[^\s?#'"]*\?)[^\s#'"]+/gi, '$1[REDACTED]');
}

function refused(python: SandboxPython, why: string, detail?: string): RolloutError {
  const message = `the packages for Python ${python.version} cannot be installed: ${why}`;
  return new RolloutError('REQUIREMENTS_FAILED', message, {
    phase: 'resolve',
    field: 'backend.harbor.requirements',
    remedy:
      'Correct the requirements, or install them in the image. Only wheels are taken: build one of a package that has none and name its file. pip is that of python.interpreter.',
    ...(detail !== undefined && { detail }),
  });
}
