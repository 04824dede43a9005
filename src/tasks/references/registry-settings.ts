import { RolloutError } from '../../core/errors.ts';

/** Where the package registry is. There is no default address. */
export interface RegistrySettings {
  /** Without a trailing slash. */
  readonly baseUrl: string;
  /** The publishable key, sent with every request. */
  readonly key: string;
}

const urlVariables = ['SLIPWAY_REGISTRY_URL', 'HARBOR_SUPABASE_URL'];
const keyVariables = ['SLIPWAY_REGISTRY_KEY', 'HARBOR_SUPABASE_PUBLISHABLE_KEY'];
const loopback = /^(?:localhost|127(?:\.\d+){3}|\[::1\])$/;

/**
 * The registry that the host's variables name; null unless they give both address and key, so that only a reference that needs a
 * registry fails. Throws CONFIG_INVALID for an address that cannot be used.
 */
export function readRegistrySettings(
  variables: Readonly<Record<string, string | undefined>>,
): RegistrySettings | null {
  const url = firstSet(variables, urlVariables);
  const key = firstSet(variables, keyVariables);
  if (url === null || key === null) return null;
  return { baseUrl: registryAddress(url.value, url.name), key: key.value };
}

/** What a package or registry dataset says when no registry is set. */
export function registryNotConfigured(): RolloutError {
  return new RolloutError(
    'REGISTRY_NOT_CONFIGURED',
    'a package or dataset of a registry is named, but the address or the key of the registry is not set',
    {
      phase: 'resolve',
      field: 'SLIPWAY_REGISTRY_URL',
      remedy: `Set ${urlVariables.join(' or ')} and ${keyVariables.join(' or ')}.`,
    },
  );
}

/** Checks an address: https, or http on this machine only; no user name, query or fragment. */
export function registryAddress(text: string, field: string): string {
  const url = URL.parse(text);
  const isUsable =
    url !== null &&
    (url.protocol === 'https:' || (url.protocol === 'http:' && loopback.test(url.hostname))) &&
    url.username === '' &&
    url.password === '' &&
    url.search === '' &&
    url.hash === '';
  if (isUsable) return url.href.replace(/\/+$/, '');
  throw new RolloutError('CONFIG_INVALID', 'this is not an address of a registry', {
    phase: 'config',
    field,
    remedy: 'Use https://host[/path]; http:// only for this machine.',
  });
}

function firstSet(
  variables: Readonly<Record<string, string | undefined>>,
  names: readonly string[],
): { readonly name: string; readonly value: string } | null {
  for (const name of names) {
    const value = variables[name]?.trim();
    if (value !== undefined && value !== '') return { name, value };
  }
  return null;
}
