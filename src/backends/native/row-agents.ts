/**
 * The agent of a row that names one: `metadata.slipway_agent`, by the name of an agent that the backend knows, never a module. It is set up as it is without
 * options; environment, verifier and limits are the server's in any case.
 */
import { RolloutError } from '../../core/errors.ts';
import { agentKey } from '../../wire/rollout/row-agent.ts';
import { usableBindings } from './bindings/binding-table.ts';
import { compileNativeOptions, type NativeOptions } from './native-options.ts';

export type OptionsOfRow = (metadata: Readonly<Record<string, unknown>> | null) => NativeOptions;

/** `given`: the backend's own options, `base` what they were compiled to. What it gives back throws REFERENCE_INVALID. */
export function optionsOfRows(
  given: Readonly<Record<string, unknown>>,
  base: NativeOptions,
  variables?: Readonly<Record<string, string | undefined>>,
): OptionsOfRow {
  const compiled = new Map<string, NativeOptions>();
  return (metadata) => {
    const name = metadata?.[agentKey];
    if (name === undefined || name === null || name === base.agent.name) return base;
    const isKnown = typeof name === 'string' && usableBindings.includes(name);
    if (!isKnown || name.startsWith('custom-')) throw unknownAgent(name);
    const known = compiled.get(name);
    if (known !== undefined) return known;
    const others = Object.entries(given).filter(([option]) => !ownOptions.has(option));
    const options = compileNativeOptions({ ...Object.fromEntries(others), agent: name }, variables);
    compiled.set(name, options);
    return options;
  };
}

/** They are the configured agent's. */
const ownOptions = new Set(['agent', 'agent_options', 'agent_config', 'binding']);

function unknownAgent(name: unknown): RolloutError {
  const names = usableBindings.filter((one) => !one.startsWith('custom-')).join(', ');
  return new RolloutError('REFERENCE_INVALID', `metadata.${agentKey} names no agent`, {
    ...{ phase: 'resolve', field: `metadata.${agentKey}` },
    detail: typeof name === 'string' ? name.slice(0, 100) : typeof name,
    remedy: `Name one of ${names}, or leave it out.`,
  });
}

/** An agent whose calls could not leave the sandbox. */
export function noHostEndpoint(binding: string, environment: string): RolloutError {
  const message = `the binding ${binding} calls its model from inside the sandbox, and sandboxes of ${environment} reach no address of the host`;
  return new RolloutError('CAPABILITY_UNSUPPORTED', message, {
    phase: 'config',
    field: 'backend.native.environment',
    remedy:
      'Use another environment, or an agent that calls its model from the host; sandboxes on other machines need --gateway-url.',
  });
}
