/**
 * The skills of a job's agents. A source leads to a folder with a SKILL.md, or to a folder of such folders. The digest is the SHA-256 over
 * the sorted files of `path NUL sha256 NUL`, as Harbor computes it.
 */
import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { basename, join, relative } from 'node:path';
import { messageOf, RolloutError } from '../core/errors.ts';
import type { SkillFolder, SkillSources } from '../tasks/references/skill-sources.ts';
import type { Skill } from '../trial/trial-options.ts';
import { withoutUserinfo } from '../wire/harbor/sensitive.ts';

/** Follows each source once, so that the lock and every trial of a run see the same files, also when a branch moves meanwhile. */
export class JobSkills {
  readonly #sources: Pick<SkillSources, 'locate'>;
  readonly #found = new Map<string, Promise<readonly Skill[]>>();
  readonly #warnings = new Set<string>();

  constructor(sources: Pick<SkillSources, 'locate'>) {
    this.#sources = sources;
  }

  /** About the sources that were followed so far. Never an address. */
  get warnings(): readonly string[] {
    return [...this.#warnings];
  }

  /**
   * A later skill replaces an earlier one of its name. REFERENCE_INVALID for a source that leads nowhere or holds no skill; for
   * repositories GIT_FAILED, ARCHIVE_UNSAFE and LOCK_TIMEOUT as well. What failed is tried again at the next call.
   */
  async load(sources: readonly string[], signal: AbortSignal): Promise<readonly Skill[]> {
    const skills = new Map<string, Skill>();
    for (const source of sources)
      for (const skill of await this.#follow(source, signal)) skills.set(skill.name, skill);
    return [...skills.values()];
  }

  #follow(source: string, signal: AbortSignal): Promise<readonly Skill[]> {
    const known = this.#found.get(source);
    if (known !== undefined) return known;
    const following = this.#read(source, signal).catch((error: unknown) => {
      this.#found.delete(source);
      throw error;
    });
    this.#found.set(source, following);
    return following;
  }

  async #read(source: string, signal: AbortSignal): Promise<readonly Skill[]> {
    const folder = await this.#sources.locate(source, signal);
    for (const warning of folder.warnings) this.#warnings.add(warning);
    const dirs = await skillDirs(folder.dir).catch((error: unknown) => {
      throw invalid(source, messageOf(error));
    });
    if (dirs.length === 0) throw invalid(source, 'there is no SKILL.md in it or one folder below');
    return await Promise.all(dirs.map((dir) => makeSkill(dir, { source, folder, signal })));
  }
}

async function skillDirs(dir: string): Promise<string[]> {
  const names = await readdir(dir);
  if (names.includes('SKILL.md')) return [dir];
  const dirs: string[] = [];
  for (const name of names.sort()) {
    const inside = await readdir(join(dir, name)).catch((): string[] => []);
    if (inside.includes('SKILL.md')) dirs.push(join(dir, name));
  }
  return dirs;
}

function invalid(source: string, why: string): RolloutError {
  return new RolloutError('REFERENCE_INVALID', `skill source ${withoutUserinfo(source)}: ${why}`, {
    phase: 'resolve',
    field: 'agent.skills',
    remedy: 'Name a folder with a SKILL.md, a folder of such folders, or a repository of them.',
  });
}

async function makeSkill(
  dir: string,
  from: { readonly source: string; readonly folder: SkillFolder; readonly signal: AbortSignal },
): Promise<Skill> {
  const name = basename(dir);
  const { gitUrl, gitCommit } = from.folder;
  return {
    name,
    dir,
    lock: {
      name,
      source: withoutUserinfo(from.source),
      digest: await digest(dir, from.signal),
      git_url: gitUrl,
      git_commit_id: gitCommit,
    },
  };
}

async function digest(dir: string, signal: AbortSignal): Promise<string> {
  const entries = await readdir(dir, { recursive: true, withFileTypes: true });
  const files = entries
    .filter((entry) => entry.isFile())
    .map((entry) => relative(dir, join(entry.parentPath, entry.name)))
    .sort();
  const hash = createHash('sha256');
  for (const file of files) {
    const content = await readFile(join(dir, file), { signal });
    hash.update(`${file}\0${createHash('sha256').update(content).digest('hex')}\0`);
  }
  return `sha256:${hash.digest('hex')}`;
}
