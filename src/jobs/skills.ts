/**
 * Skills from folders of this machine. A source is a folder with a SKILL.md, or a folder of such folders. The digest is the SHA-256 over
 * the sorted files of `path NUL sha256 NUL`, as Harbor computes it.
 */
import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { basename, join, relative, resolve } from 'node:path';
import { messageOf, RolloutError } from '../core/errors.ts';
import type { Skill } from '../trial/trial-options.ts';

/** REFERENCE_INVALID for a source that is no local folder or holds no skill. A later skill replaces an earlier one of its name. */
export async function loadSkills(
  sources: readonly string[],
  cwd: string,
  signal: AbortSignal,
): Promise<Skill[]> {
  const skills = new Map<string, Skill>();
  for (const source of sources)
    for (const skill of await loadSource(source, cwd, signal)) skills.set(skill.name, skill);
  return [...skills.values()];
}

async function loadSource(source: string, cwd: string, signal: AbortSignal): Promise<Skill[]> {
  signal.throwIfAborted();
  const dir = resolve(cwd, source.replace(/^~(?=$|\/)/, homedir()));
  const names = await readdir(dir).catch((error: unknown) => {
    throw invalid(source, messageOf(error));
  });
  if (names.includes('SKILL.md')) return [await makeSkill(dir, source, signal)];
  const skills: Skill[] = [];
  for (const name of names.sort()) {
    const inside = await readdir(join(dir, name)).catch((): string[] => []);
    if (inside.includes('SKILL.md')) skills.push(await makeSkill(join(dir, name), source, signal));
  }
  if (skills.length === 0) throw invalid(source, 'there is no SKILL.md in it or one folder below');
  return skills;
}

function invalid(source: string, why: string): RolloutError {
  return new RolloutError('REFERENCE_INVALID', `skill source ${source}: ${why}`, {
    phase: 'resolve',
    field: 'agent.skills',
    remedy: 'Name a local folder with a SKILL.md; sources in repositories have to be cloned first.',
  });
}

async function makeSkill(dir: string, source: string, signal: AbortSignal): Promise<Skill> {
  const name = basename(dir);
  return {
    name,
    dir,
    lock: { name, source, digest: await digest(dir, signal), git_url: null, git_commit_id: null },
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
