/** The binding of a configured agent. An agent that no row describes is refused: a generic wiring would send it to somebody else's model. */
import type { AgentConfig } from '../../../wire/harbor/run-config.ts';
import type { Binding } from './binding.ts';
import { bindings, usableBindings } from './binding-table.ts';

type Choice =
  | { readonly binding: Binding; readonly problem?: never }
  | { readonly problem: string; readonly binding?: never };

/** `asked`: the option `binding`; null = not set. */
export function chooseBinding(
  { name, import_path: importPath }: Pick<AgentConfig, 'name' | 'import_path'>,
  asked: string | null,
): Choice {
  const wanted = asked ?? (importPath === null ? name : null);
  const custom = usableBindings.filter((one) => one.startsWith('custom-')).join(' or ');
  if (importPath !== null) {
    if (wanted === null) return { problem: `binding: an agent by import path needs ${custom}` };
    if (!/^[\w.]+:[A-Za-z_]\w*$/.test(importPath))
      return { problem: 'agent: an import path is module:Class' };
    if (/^harbor\.agents[.:]/.test(importPath))
      return {
        problem: `agent: ${importPath} is Harbor's own agent: name it instead, as one of ${usableBindings.join(', ')}`,
      };
  }
  const binding = bindings.find((one) => one.name === wanted);
  if (binding === undefined)
    return {
      problem: `${asked === null ? 'agent' : 'binding'}: nothing is known of ${JSON.stringify(wanted)}; use one of ${usableBindings.join(', ')}`,
    };
  if (binding.needs !== null) return { problem: `agent: ${binding.name} needs ${binding.needs}` };
  if (binding.isCustom !== (importPath !== null) || (importPath === null && name !== wanted))
    return {
      problem: binding.isCustom
        ? `binding: ${binding.name} needs an agent by import path (module:Class)`
        : importPath === null
          ? `binding: the agent ${String(name)} has the binding ${String(name)} only`
          : `binding: an agent by import path needs ${custom}`,
    };
  return { binding };
}

/** What the user set and only a rollout may set, and a version other than the proven one; sorted. */
export function ownedProblems(binding: Binding, { kwargs, env }: AgentConfig): readonly string[] {
  const owned = [
    ...binding.ownedKwargs.filter((path) => isSet(kwargs, path)).map((path) => `kwargs.${path}`),
    ...binding.ownedEnv.filter((name) => name in env).map((name) => `env.${name}`),
  ].sort();
  const { pinnedVersion: pin, name } = binding;
  const isOtherVersion = pin !== null && 'version' in kwargs && kwargs['version'] !== pin;
  return [
    ...owned.map((path) => `agent ${path}: comes from the controller with every rollout`),
    ...(isOtherVersion ? [`agent kwargs.version: ${name} is proven with ${pin} only`] : []),
  ];
}

/** Whoever runs the server has to know that the agent is one of those. */
export function unverifiedProblems(
  { name, isVerified }: Binding,
  isAllowed: boolean,
): readonly string[] {
  if (isVerified || isAllowed) return [];
  return [`allow_unverified_agent: ${name} is not verified; set it to true to let it in`];
}

/** Variables of this process that mean another service than the rollout's; nobody must find that out by an invoice. */
export function hostProblems(
  { name, forbiddenHostVariables }: Binding,
  variables: Readonly<Record<string, string | undefined>>,
): readonly string[] {
  const active = Object.entries(forbiddenHostVariables).filter(([variable, value]) => {
    const found = (variables[variable] ?? '').trim();
    return value === null ? found !== '' : found === value;
  });
  if (active.length === 0) return [];
  const names = active.map(([variable]) => variable).sort();
  return [`agent: ${name} cannot be used while ${names.join(' and ')} of this process is set`];
}

/** Whatever is in the way of the path counts too: the slot could not be written then. Names compare without case and `_`. */
function isSet(kwargs: Readonly<Record<string, unknown>>, path: string): boolean {
  const [first = '', ...rest] = path.split('.');
  const plain = (name: string): string => name.toLowerCase().replaceAll('_', '');
  const found = Object.entries(kwargs).filter(([name]) => plain(name) === plain(first));
  return found.some(([, value]) => {
    if (rest.length === 0) return true;
    if (value === null || value === undefined) return false;
    if (typeof value !== 'object' || Array.isArray(value)) return true;
    return isSet(value as Readonly<Record<string, unknown>>, rest.join('.'));
  });
}
