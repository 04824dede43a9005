/**
 * Who may call: control keys (the operator) and keys of tenants. Keys are kept as digests and compared in constant time; files of keys are read again
 * without a restart, and one that cannot be read leaves the keys as they were.
 */
import { createHash, timingSafeEqual } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { messageOf, RolloutError } from '../core/errors.ts';
import type { Caller } from '../scheduler/rollout-service.ts';

export interface KeyRing {
  /** False: nobody needs a key, and only this machine may call. */
  readonly hasKeys: boolean;
  /** null = no such key. */
  identify(key: string): Caller | null;
}

/** Where keys come from. Several per caller are fine: that is how they are rotated. */
export interface KeySource {
  /** null = control keys. */
  readonly tenant: string | null;
  /** For messages: `keys.control_file`. */
  readonly name: string;
  /** A file holds one key per line; empty lines and lines that begin with `#` do not count. */
  readonly from:
    | { readonly kind: 'value'; readonly value: string }
    | { readonly kind: 'file'; readonly path: string };
}

/** Shorter ones are guessed. */
export const minKeyLength = 16;

interface HeldKey {
  readonly digest: Buffer;
  readonly caller: Caller;
}

export class ConfiguredKeyRing implements KeyRing {
  readonly #sources: readonly KeySource[];
  #held: readonly HeldKey[] = [];

  private constructor(sources: readonly KeySource[]) {
    this.#sources = sources;
  }

  /** CONFIG_INVALID names every source that cannot be used, never a key. */
  static async open(sources: readonly KeySource[]): Promise<ConfiguredKeyRing> {
    const ring = new ConfiguredKeyRing(sources);
    await ring.reload();
    return ring;
  }

  get hasKeys(): boolean {
    return this.#sources.length > 0;
  }

  identify(key: string): Caller | null {
    const digest = digestOf(key);
    let found: Caller | null = null;
    // Every key is compared, so that the time says nothing about which one was close.
    for (const held of this.#held) if (timingSafeEqual(held.digest, digest)) found = held.caller;
    return found;
  }

  /** Reads the files again. Rejects with CONFIG_INVALID and keeps all keys as they were when one cannot be used. */
  async reload(): Promise<void> {
    const problems: string[] = [];
    const callers = new Map<string, string | null>();
    for (const source of this.#sources)
      for (const key of await keysOf(source, problems)) {
        if (key.length < minKeyLength)
          problems.push(`${source.name}: a key must have at least ${minKeyLength} characters`);
        if (callers.has(key) && callers.get(key) !== source.tenant)
          problems.push(`${source.name}: a key of this source also belongs to another caller`);
        callers.set(key, source.tenant);
      }
    if (problems.length > 0)
      throw new RolloutError('CONFIG_INVALID', [...new Set(problems)].join('; '), {
        phase: 'config',
        field: fieldOf(problems),
        remedy:
          'Name a file that this user may read, with one key of random characters per line, each for one caller.',
      });
    this.#held = [...callers].map(([key, tenant]) => ({
      digest: digestOf(key),
      caller: { tenant },
    }));
  }
}

/** The setting, when all problems are those of one. */
function fieldOf(problems: readonly string[]): string {
  const names = new Set(problems.map((problem) => problem.slice(0, problem.indexOf(':'))));
  const [only = 'keys'] = names;
  return names.size === 1 ? only : 'keys';
}

async function keysOf(source: KeySource, problems: string[]): Promise<readonly string[]> {
  if (source.from.kind === 'value') return [source.from.value];
  try {
    const text = await readFile(source.from.path, 'utf8');
    const keys = text
      .split('\n')
      .map((line) => line.trim())
      .filter((line) => line !== '' && !line.startsWith('#'));
    if (keys.length === 0) problems.push(`${source.name}: ${source.from.path} holds no key`);
    return keys;
  } catch (error) {
    problems.push(`${source.name}: ${source.from.path}: ${whyUnread(error)}`);
    return [];
  }
}

function whyUnread(error: unknown): string {
  const { code } = error as NodeJS.ErrnoException;
  if (code === 'ENOENT') return 'no such file';
  return code === undefined ? messageOf(error) : `cannot be read (${code})`;
}

function digestOf(key: string): Buffer {
  return createHash('sha256').update(key).digest();
}
