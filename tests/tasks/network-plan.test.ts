import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { never } from '../../src/core/linked-abort.ts';
import { loadTask } from '../../src/tasks/load-task.ts';
import {
  laterPolicies,
  resolveNetworkPlan,
  type NetworkPlan,
} from '../../src/tasks/network-plan.ts';
import { parseAllowedHost, type NetworkPolicy } from '../../src/wire/network-policy.ts';
import { plainTask, taskFolder } from '../fakes/task-folder.ts';

interface Given {
  readonly toml: string;
  readonly environmentHosts?: readonly string[];
  readonly agentHosts?: readonly string[];
}

async function planOf({
  toml,
  environmentHosts = [],
  agentHosts = [],
}: Given): Promise<NetworkPlan> {
  await using folder = await taskFolder({
    ...plainTask,
    'steps/one/instruction.md': 'One.',
    'task.toml': toml,
  });
  const task = await loadTask({ dir: folder.dir, signal: never });
  return resolveNetworkPlan({
    task,
    step: task.steps[0] ?? null,
    environmentHosts: environmentHosts.map((host) => parseAllowedHost(host)),
    agentHosts: agentHosts.map((host) => parseAllowedHost(host)),
  });
}

function shortly(policy: NetworkPolicy): string {
  if (policy.mode !== 'allowlist') return policy.mode;
  return `[${policy.hosts.map(({ value }) => value).join(' ')}]`;
}

const closed = '[environment]\nnetwork_mode = "no-network"\n';
const list = (table: string, host: string): string =>
  `[${table}]\nnetwork_mode = "allowlist"\nallowed_hosts = ["${host}"]\n`;
const step = '[[steps]]\nname = "one"\n';

// Environment, agent, verifier environment, verifier.
const rows: readonly (readonly [string, Given, readonly string[]])[] = [
  ['everything is public by default', { toml: '' }, ['public', 'public', 'public', 'public']],
  [
    'phases follow the environment',
    { toml: closed },
    ['no-network', 'no-network', 'no-network', 'no-network'],
  ],
  [
    'the agent has its own policy',
    { toml: closed + list('agent', 'a.com') },
    ['no-network', '[a.com]', 'no-network', 'no-network'],
  ],
  [
    'the verifier has its own policy',
    { toml: list('verifier', 'v.com') },
    ['public', 'public', 'public', '[v.com]'],
  ],
  [
    'a step beats the task',
    {
      toml:
        list('agent', 'a.com') + list('verifier', 'v.com') + step + list('steps.agent', 's.com'),
    },
    ['public', '[s.com]', 'public', '[v.com]'],
  ],
  [
    'a step inherits the agent and the verifier of the task',
    { toml: list('agent', 'a.com') + list('verifier', 'v.com') + step },
    ['public', '[a.com]', 'public', '[v.com]'],
  ],
  [
    'agent hosts on no network open the agent alone',
    { toml: closed, agentHosts: ['x.com'] },
    ['no-network', '[x.com]', 'no-network', 'no-network'],
  ],
  [
    'environment hosts reach every phase that follows the environment',
    { toml: closed, environmentHosts: ['x.com'], agentHosts: ['y.com', 'x.com'] },
    ['[x.com]', '[x.com y.com]', '[x.com]', '[x.com]'],
  ],
  [
    'environment hosts reach an inherited verifier environment',
    { toml: `${closed}[verifier]\nenvironment_mode = "separate"`, environmentHosts: ['x.com'] },
    ['[x.com]', '[x.com]', '[x.com]', '[x.com]'],
  ],
  [
    'environment hosts do not reach a verifier environment of its own',
    {
      toml: `${closed}[verifier.environment]\nnetwork_mode = "no-network"`,
      environmentHosts: ['x.com'],
    },
    ['[x.com]', '[x.com]', 'no-network', 'no-network'],
  ],
  [
    'a verifier environment of its own is public by default',
    { toml: `${closed}[verifier.environment]\ncpus = 1` },
    ['no-network', 'no-network', 'public', 'public'],
  ],
];

describe('in the network plan of a trial', () => {
  for (const [what, given, expected] of rows)
    it(what, async () => {
      const plan = await planOf(given);
      const { environment, agent, verifierEnvironment, verifier } = plan;
      assert.deepEqual([environment, agent, verifierEnvironment, verifier].map(shortly), expected);
      assert.deepEqual(plan.warnings, []);
    });

  it('hosts for a public network only warn', async () => {
    const plan = await planOf({ toml: '', environmentHosts: ['x.com'], agentHosts: ['y.com'] });
    assert.equal(shortly(plan.agent), 'public');
    assert.deepEqual(
      plan.warnings.map((warning) => warning.split(':')[0]),
      ['environment.extra_allowed_hosts', 'agent.extra_allowed_hosts'],
    );
  });

  it('a phase equal to the environment asks for no switch, and equal phases for one', () => {
    const a: NetworkPolicy = { mode: 'allowlist', hosts: [parseAllowedHost('a.com')] };
    const publicPolicy: NetworkPolicy = { mode: 'public' };
    assert.deepEqual(laterPolicies(publicPolicy, [publicPolicy, a, { ...a }]), [a]);
    assert.deepEqual(laterPolicies(a, [a, a]), []);
  });
});
