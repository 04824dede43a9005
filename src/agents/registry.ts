import { RolloutError } from '../core/errors.ts';
import type { AgentFactory, AgentResolver } from './agent.ts';
import type { Cli } from './installed/cli.ts';
import { refusedAgents } from './refused-agents.ts';

/** Every agent by name; its code is loaded when it is first asked for. */
const agents: ReadonlyMap<string, () => Promise<AgentFactory>> = new Map([
  [
    'oracle',
    async (): Promise<AgentFactory> => {
      const { OracleAgent } = await import('./oracle/oracle-agent.ts');
      return (options) => new OracleAgent(options);
    },
  ],
  [
    'terminus-2',
    async (): Promise<AgentFactory> => {
      const { Terminus2Agent } = await import('./terminus-2/terminus-2-agent.ts');
      return (options) => new Terminus2Agent(options);
    },
  ],
  ['nop', async (): Promise<AgentFactory> => (await import('./nop/nop-agent.ts')).nopAgent],
]);

/** Programs of vendors, which are brought into the sandbox. */
const clis: ReadonlyMap<string, () => Promise<Cli>> = new Map([
  ['aider', async () => (await import('./aider/aider-cli.ts')).aiderCli],
  ['claude-code', async () => (await import('./claude-code/claude-cli.ts')).claudeCli],
  ['codex', async () => (await import('./codex/codex-cli.ts')).codexCli],
  ['opencode', async () => (await import('./opencode/opencode-cli.ts')).opencodeCli],
  ['mini-swe-agent', async () => (await import('./mini-swe-agent/mini-cli.ts')).miniCli],
  ['qwen-coder', async () => (await import('./qwen-coder/qwen-cli.ts')).qwenCli],
]);

/** Other names of the same agents. */
const aliases: ReadonlyMap<string, string> = new Map([['qwen-code', 'qwen-coder']]);

export const agentNames: readonly string[] = [...agents.keys(), ...clis.keys()].sort();

/** What is known of an agent before it is made. */
export interface AgentDescription {
  readonly name: string;
  /** Of its program; null = a part of this one. */
  readonly version: string | null;
  /** What its program speaks from inside the sandbox; null = it asks its model from the host, or none. */
  readonly dialect: string | null;
  /** Packages that are installed on this machine for it. */
  readonly packages: readonly string[];
  /** Why it cannot be used here; null = it can. */
  readonly refusal: string | null;
}

/** All of them, refused ones last. */
export async function describeAgents(): Promise<readonly AgentDescription[]> {
  const known = await Promise.all(
    agentNames.map(async (name) => {
      const cli = await clis.get(name)?.();
      const { version = null, dialect = null } = cli ?? {};
      const packages = cli?.programs(cli.version).flatMap((program) => program.packages) ?? [];
      return { name, version, dialect, packages, refusal: null };
    }),
  );
  const refused = [...refusedAgents].map(([name, refusal]) => ({
    ...{ name, version: null, dialect: null, packages: [], refusal },
  }));
  return [...known, ...refused];
}

export const resolveAgent: AgentResolver = async (name) => {
  const load = agents.get(name);
  if (load !== undefined) return await load();
  const loadCli = clis.get(aliases.get(name) ?? name);
  if (loadCli !== undefined) {
    const { InstalledAgent } = await import('./installed/installed-agent.ts');
    const cli = await loadCli();
    return (options) => new InstalledAgent(cli, options);
  }
  if (/^(?!acp:)[^:]+:[^:]+$/.test(name)) {
    const { PythonAgent } = await import('./python/python-agent.ts');
    return (options) => new PythonAgent(name, options);
  }
  const refusal = refusedAgents.get(name);
  if (refusal !== undefined)
    throw new RolloutError('AGENT_UNKNOWN', `the agent ${name} cannot be used: ${refusal}`, {
      phase: 'config',
      field: 'agent.name',
      remedy: `Use one of: ${agentNames.join(', ')}.`,
    });
  throw new RolloutError('AGENT_UNKNOWN', `no agent is called ${JSON.stringify(name)}`, {
    phase: 'config',
    field: 'agent.name',
    remedy: `Use one of: ${agentNames.join(', ')}; or a class in Python, as module:Class.`,
  });
};
