import type { McpServerEntry } from '../../../wire/harbor/run-config.ts';
import type { AgentEnvironment } from '../../agent.ts';
import { findSkills, type FoundSkill } from './find-skills.ts';

export interface Surroundings {
  readonly environment: Pick<AgentEnvironment, 'exec'>;
  readonly mcpServers: readonly McpServerEntry[];
  /** null = none. */
  readonly skillsDir: string | null;
}

/** The task's instruction with what else the agent has: servers of tools, and skills that lie in the sandbox. */
export async function augmentInstruction(
  instruction: string,
  { environment, mcpServers, skillsDir }: Surroundings,
  signal: AbortSignal,
): Promise<string> {
  const skills = skillsDir === null ? [] : await findSkills(environment, skillsDir, signal);
  return [instruction, mcpSection(mcpServers), skillsSection(skills)]
    .filter((section) => section !== '')
    .join('\n\n');
}

function mcpSection(servers: readonly McpServerEntry[]): string {
  if (servers.length === 0) return '';
  return ['MCP Servers:', ...servers.map(describeServer)].join('\n');
}

function describeServer({ name, transport, url, command, args }: McpServerEntry): string {
  const where = transport === 'stdio' ? [command ?? '', ...args].join(' ') : (url ?? '');
  return `- ${name} (${transport}): ${where}`;
}

function skillsSection(skills: readonly FoundSkill[]): string {
  if (skills.length === 0) return '';
  const entries = skills.flatMap((skill) => [
    '  <skill>',
    `    <name>${escapeXml(skill.name)}</name>`,
    `    <description>${escapeXml(skill.description)}</description>`,
    `    <location>${escapeXml(skill.location)}</location>`,
    '  </skill>',
  ]);
  return ['<available_skills>', ...entries, '</available_skills>'].join('\n');
}

/** Characters that XML cannot hold at all are replaced. */
function escapeXml(text: string): string {
  return text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll(/[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]/gu, '\ufffd');
}
