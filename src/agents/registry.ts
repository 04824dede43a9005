import { RolloutError } from '../core/errors.ts';
import type { AgentFactory, AgentResolver } from './agent.ts';
import type { Cli } from './installed/cli.ts';

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
  ['codex', () => installed(async () => (await import('./codex/codex-cli.ts')).codexCli)],
  [
    'claude-code',
    () => installed(async () => (await import('./claude-code/claude-cli.ts')).claudeCli),
  ],
  ['nop', async (): Promise<AgentFactory> => (await import('./nop/nop-agent.ts')).nopAgent],
]);

async function installed(load: () => Promise<Cli>): Promise<AgentFactory> {
  const [{ InstalledAgent }, cli] = await Promise.all([
    import('./installed/installed-agent.ts'),
    load(),
  ]);
  return (options) => new InstalledAgent(cli, options);
}

export const agentNames: readonly string[] = [...agents.keys()].sort();

export const resolveAgent: AgentResolver = async (name) => {
  const load = agents.get(name);
  if (load !== undefined) return await load();
  if (/^(?!acp:)[^:]+:[^:]+$/.test(name)) {
    const { PythonAgent } = await import('./python/python-agent.ts');
    return (options) => new PythonAgent(name, options);
  }
  throw new RolloutError('AGENT_UNKNOWN', `no agent is called ${JSON.stringify(name)}`, {
    phase: 'config',
    field: 'agent.name',
    remedy: `Use one of: ${agentNames.join(', ')}; or a class in Python, as module:Class.`,
  });
};
