/** Where this machine keeps what Slipway makes, and the settings that come from process variables. */
import { homedir } from 'node:os';
import { join, resolve } from 'node:path';

export type HostVariables = Readonly<Record<string, string | undefined>>;

export interface Machine {
  readonly variables: HostVariables;
  /** Absolute; relative paths of flags and job files start here. */
  readonly cwd: string;
  /** Journals, locks and sandboxes. `SLIPWAY_STATE_DIR`. */
  readonly stateDir: string;
  /** Images, fetched tasks, base-image archives. `SLIPWAY_CACHE_DIR`. */
  readonly cacheDir: string;
  /** PEM file brought into sandboxes and builds; null = none. `SLIPWAY_CA_BUNDLE`. */
  readonly extraCaBundle: string | null;
}

export function readMachine(variables: HostVariables, cwd: string): Machine {
  const home = given(variables['HOME']) ?? homedir();
  const folder = (own: string, shared: string, fallback: string): string =>
    given(variables[own]) ??
    join(given(variables[shared]) ?? join(home, ...fallback.split('/')), 'slipway');
  const bundle = given(variables['SLIPWAY_CA_BUNDLE']);
  return {
    variables,
    cwd,
    stateDir: resolve(cwd, folder('SLIPWAY_STATE_DIR', 'XDG_STATE_HOME', '.local/state')),
    cacheDir: resolve(cwd, folder('SLIPWAY_CACHE_DIR', 'XDG_CACHE_HOME', '.cache')),
    extraCaBundle: bundle === null ? null : resolve(cwd, bundle),
  };
}

/** An empty variable counts as not set. */
function given(value: string | undefined): string | null {
  return value === undefined || value === '' ? null : value;
}
