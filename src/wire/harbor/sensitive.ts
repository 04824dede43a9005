/** How secrets of a configuration are written to files: never as they are (Harbor's masking rules for variables). */

const sensitiveName = /KEY|SECRET|TOKEN|PASSWORD|CREDENTIAL|AUTH/i;
const template = /^\$\{[^}:]+(:-[^]*)?\}$/;

type Variables = Readonly<Record<string, string>>;
export type HostVariables = Readonly<Record<string, string | undefined>>;

export function isSensitiveName(name: string): boolean {
  return sensitiveName.test(name);
}

/** Whether the whole value is `${NAME}` or `${NAME:-default}`: it names a secret instead of holding one. */
export function isTemplate(value: string): boolean {
  return template.test(value);
}

/** `****`, with a little of both ends for values longer than eight characters. */
export function redactedValue(value: string): string {
  return value.length <= 8 ? '****' : `${value.slice(0, 4)}****${value.slice(-3)}`;
}

/**
 * Variables as they may be written: a sensitive literal becomes `${NAME}` when the host has the same variable with the same value,
 * else it is redacted; templates and other values stay.
 */
export function maskVariables(variables: Variables, host: HostVariables): Record<string, string> {
  return Object.fromEntries(
    Object.entries(variables).map(([name, value]) => [name, maskValue(name, value, host)]),
  );
}

/** An address without the user name and password of HTTP; everything else unchanged. */
export function withoutUserinfo(address: string): string {
  return address.replace(/^(https?:\/\/)[^/?#]*@/i, '$1');
}

/** Names of options that hold a secret as text; stricter than for variables, or `tokenizer` would be one. */
const secretOption =
  /(?:^|[_-])(?:api[_-]?key|key|secret|password|token|credentials?|authorization)$/i;
const userinfo = /^(https?:\/\/)[^/?#]*@/i;

/** An agent's options as they may be written: texts under the name of a secret and passwords in addresses are redacted, at any depth. */
export function maskOptions(options: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(options).map(([name, value]) => [name, maskOption(name, value)]),
  );
}

function maskOption(name: string, value: unknown): unknown {
  if (typeof value === 'string')
    return secretOption.test(name) && value !== '' && !isTemplate(value)
      ? redactedValue(value)
      : value.replace(userinfo, '$1****@');
  if (Array.isArray(value)) return value.map((part) => maskOption(name, part));
  if (typeof value !== 'object' || value === null) return value;
  return maskOptions(value as Record<string, unknown>);
}

/** The secrets among an agent's options, by their names, as far as {@link maskOptions} hides them. */
export function secretOptions(options: Readonly<Record<string, unknown>>): readonly string[] {
  return Object.entries(options).flatMap(([name, value]) => secretsIn(name, value));
}

function secretsIn(name: string, value: unknown): readonly string[] {
  if (typeof value === 'string')
    return secretOption.test(name) && !isTemplate(value) ? [value] : [];
  if (Array.isArray(value)) return value.flatMap((part) => secretsIn(name, part));
  if (typeof value !== 'object' || value === null) return [];
  return secretOptions(value as Record<string, unknown>);
}

function maskValue(name: string, value: string, host: HostVariables): string {
  if (!isSensitiveName(name) || isTemplate(value) || value === '') return value;
  return host[name] === value ? `\${${name}}` : redactedValue(value);
}
