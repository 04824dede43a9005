import { stringify } from 'smol-toml';

/** Root fields that come first and last; in TOML they must all stand before the first table. */
const firstFields = ['schema_version', 'source', 'multi_step_reward_strategy'];
const lastField = 'artifacts';
const tables = [
  'task',
  'steps',
  'metadata',
  'verifier',
  'agent',
  'environment',
  'solution',
] as const;

/**
 * Writes a task.toml in Harbor's order: root fields, then `[task]`, `[[steps]]`, `[metadata]`, `[verifier]`, `[agent]`,
 * `[environment]`, `[solution]`, then the rest. Takes a document or a parsed configuration. Nulls and empty tables are
 * left out, and so is the deprecated `allow_internet`.
 */
export function writeTaskToml(document: Readonly<Record<string, unknown>>): string {
  const fields = Object.keys(document).filter((key) => !isTables(document[key]));
  const order = [
    ...firstFields,
    ...fields.filter((key) => key !== lastField),
    lastField,
    ...tables,
    ...Object.keys(document),
  ];
  const ordered = [...new Set(order)]
    .filter((key) => Object.hasOwn(document, key))
    .map((key) => [key, withoutEmpty(document[key])] as const)
    .filter(([, value]) => value !== undefined);
  return stringify(Object.fromEntries(ordered));
}

/** Written under a header of its own: a table, or an array of tables only. */
function isTables(value: unknown): boolean {
  if (Array.isArray(value)) return value.length > 0 && value.every(isTable);
  return isTable(value);
}

function isTable(value: unknown): value is Readonly<Record<string, unknown>> {
  return (
    typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof Date)
  );
}

function withoutEmpty(value: unknown): unknown {
  if (value === null || value === undefined) return undefined;
  if (Array.isArray(value)) return value.length === 0 ? undefined : value.map(itemWithoutEmpty);
  if (!isTable(value)) return value;
  const kept = Object.entries(value)
    .filter(([key]) => key !== 'allow_internet')
    .map(([key, field]) => [key, withoutEmpty(field)] as const)
    .filter(([, field]) => field !== undefined);
  return kept.length === 0 ? undefined : Object.fromEntries(kept);
}

function itemWithoutEmpty(item: unknown): unknown {
  return withoutEmpty(item) ?? (isTable(item) ? {} : item);
}
