/** What a sandbox may reach, as Harbor's task format names it. Entries of `hosts` are normalised by `parseAllowedHost`. */
export type NetworkPolicy =
  | { readonly mode: 'public' }
  | { readonly mode: 'no-network' }
  | { readonly mode: 'allowlist'; readonly hosts: readonly AllowedHost[] };

export type AllowedHostKind =
  'hostname' | 'wildcard-hostname' | 'ipv4-address' | 'ipv6-address' | 'ipv4-cidr' | 'ipv6-cidr';

export interface AllowedHost {
  readonly kind: AllowedHostKind;
  /** Normalised text: lower case, no trailing dot, IPv6 compressed, CIDR with host bits zero. */
  readonly value: string;
}
