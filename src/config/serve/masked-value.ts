const secretName = /(?:^|_)(?:key|keys|token|secret|password|authorization|credential)s?$/i;
const mask = '***';

/** A value of the configuration as it may be shown: what is called a key is masked, and so is who logs in by a URL. */
export function maskedValue(value: unknown): unknown {
  if (typeof value === 'string') return value.replace(/(:\/\/)[^/@\s]*@/g, `$1${mask}@`);
  if (Array.isArray(value)) return value.map(maskedValue);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, part]) => {
      const canBeSecret = typeof part === 'string' || (typeof part === 'object' && part !== null);
      return [name, canBeSecret && secretName.test(name) ? mask : maskedValue(part)];
    }),
  );
}
