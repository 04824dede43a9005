import type { Caller } from './rollout-service.ts';
import type { TenantOptions } from './scheduler-parts.ts';

export const defaultTenant = 'default';

/** Whose a rollout is, and what their shares are. */
export class Tenants {
  readonly #weights: ReadonlyMap<string, number>;
  /** Longest first. */
  readonly #prefixes: readonly (readonly [prefix: string, name: string])[];

  constructor(tenants: readonly TenantOptions[]) {
    this.#weights = new Map([
      [defaultTenant, 1],
      ...tenants.map(({ name, weight }) => [name, weight] as const),
    ]);
    this.#prefixes = tenants
      .flatMap(({ name, idPrefix }) => (idPrefix === null ? [] : [[idPrefix, name] as const]))
      .sort(([a], [b]) => b.length - a.length);
  }

  get names(): readonly string[] {
    return [...this.#weights.keys()];
  }

  /** The caller's own, else the longest prefix that the id begins with, else `default`. */
  of(id: string, caller: Caller): string {
    return caller.tenant ?? this.byPrefix(id) ?? defaultTenant;
  }

  /** null = no prefix fits. */
  byPrefix(id: string): string | null {
    return this.#prefixes.find(([prefix]) => id.startsWith(prefix))?.[1] ?? null;
  }

  /** One whose configuration has gone weighs as much as `default` does. */
  weight(name: string): number {
    return this.#weights.get(name) ?? 1;
  }
}

/** A tenant sees its own rollouts, the operator all. */
export function maySee(caller: Caller, tenant: string): boolean {
  return caller.tenant === null || caller.tenant === tenant;
}
