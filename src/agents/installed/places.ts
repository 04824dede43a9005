/** Where things of agents are in a sandbox. */
const programsRoot = '/opt/slipway/agents';

/** A folder that every user may write to: an agent's user need not have a home. */
export const homesRoot = '/installed-agent';

export function programAt(name: string): string {
  return `${programsRoot}/${name}`;
}
