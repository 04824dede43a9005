import { parse } from 'yaml';
import { shellQuote } from '../../../environments/shared/shell-quote.ts';
import type { AgentEnvironment } from '../../agent.ts';

export interface FoundSkill {
  readonly name: string;
  readonly description: string;
  /** Path of its SKILL.md in the sandbox. */
  readonly location: string;
}

const timeoutMs = 30_000;
/** Of each file; a front matter is far shorter, and all files share one captured output. */
const maxFrontMatterBytes = 16_384;

/**
 * The skills one level below a folder in the sandbox, by path. What has no front matter with a name and a description is none; neither is
 * a folder that cannot be read. One command reads them all. EXEC_TIMEOUT when that takes too long.
 */
export async function findSkills(
  environment: Pick<AgentEnvironment, 'exec'>,
  dir: string,
  signal: AbortSignal,
): Promise<readonly FoundSkill[]> {
  const command = `find -H ${shellQuote(dir)} -mindepth 2 -maxdepth 2 -name SKILL.md -type f | LC_ALL=C sort |
while IFS= read -r file; do
  printf '%s\\0' "$file"
  head -c ${maxFrontMatterBytes} -- "$file" | tr -d '\\000'
  printf '\\0'
done`;
  const { stdout } = await environment.exec({ command, timeoutMs }, signal);
  const parts = stdout.split('\0');
  const skills: FoundSkill[] = [];
  for (let at = 0; at + 1 < parts.length; at += 2) {
    const skill = readSkill(parts[at] ?? '', parts[at + 1] ?? '');
    if (skill !== null) skills.push(skill);
  }
  return skills;
}

function readSkill(location: string, content: string): FoundSkill | null {
  const frontMatter = /^---\r?\n([\s\S]*?)\r?\n---/.exec(content)?.[1];
  if (frontMatter === undefined) return null;
  const fields = parseYaml(frontMatter);
  if (typeof fields !== 'object' || fields === null) return null;
  const name = plainText('name' in fields ? fields.name : null);
  const description = plainText('description' in fields ? fields.description : null);
  return name === null || description === null ? null : { name, description, location };
}

/** undefined for what is not YAML: the file is somebody else's. */
function parseYaml(text: string): unknown {
  try {
    return parse(text, { logLevel: 'error' });
  } catch {
    return undefined;
  }
}

function plainText(value: unknown): string | null {
  if (typeof value === 'number' || typeof value === 'boolean') return String(value);
  return typeof value === 'string' ? value.trim() : null;
}
