import { taskConfigSchema, type TaskConfig } from '../wire/harbor/task-config.ts';
import { unknownKeys } from '../wire/harbor/unknown-keys.ts';
import { findOverlaps } from './artifacts.ts';
import type { TomlDocument } from './read-task-toml.ts';

/** Something in a valid task.toml that its author should look at. */
export interface FieldNote {
  readonly code: 'FIELD_DEPRECATED' | 'FIELD_DOUBTFUL' | 'FIELD_UNKNOWN' | 'ARTIFACTS_OVERLAP';
  readonly field: string;
  readonly message: string;
  readonly remedy: string;
}

export function fieldNotes(document: TomlDocument, config: TaskConfig): readonly FieldNote[] {
  return [
    ...versionNotes(document),
    ...tablesOf(document).flatMap(({ field, table, kind }) => [
      ...(kind === 'environment' ? deprecatedNotes(field, table) : []),
      ...doubtfulNotes(field, table),
    ]),
    ...overlapNotes(config),
    ...unknownKeys(taskConfigSchema, document).map(unknownNote),
  ];
}

interface NamedTable {
  readonly field: string;
  readonly table: TomlDocument;
  readonly kind: 'environment' | 'phase';
}

/** The tables that a task.toml repeats on two levels, as far as they are written. */
function tablesOf(document: TomlDocument): readonly NamedTable[] {
  const levels = [
    { prefix: '', table: document },
    ...asArray(document['steps']).map((step, index) => ({
      prefix: `steps[${index}].`,
      table: asTable(step) ?? {},
    })),
  ];
  return levels.flatMap(({ prefix, table }) => [
    ...named(
      `${prefix}environment`,
      prefix === '' ? table['environment'] : undefined,
      'environment',
    ),
    ...named(`${prefix}agent`, table['agent'], 'phase'),
    ...named(`${prefix}verifier`, table['verifier'], 'phase'),
    ...named(
      `${prefix}verifier.environment`,
      asTable(table['verifier'])?.['environment'],
      'environment',
    ),
  ]);
}

function named(field: string, value: unknown, kind: NamedTable['kind']): readonly NamedTable[] {
  const table = asTable(value);
  return table === null ? [] : [{ field, table, kind }];
}

function asTable(value: unknown): TomlDocument | null {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
    ? (value as TomlDocument)
    : null;
}

function asArray(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

function versionNotes(document: TomlDocument): readonly FieldNote[] {
  if (document['version'] === undefined) return [];
  const isUsed = document['schema_version'] === undefined;
  return [
    {
      code: 'FIELD_DEPRECATED',
      field: 'version',
      message: isUsed ? 'is an older spelling' : 'is ignored beside schema_version',
      remedy: isUsed ? 'Rename it to schema_version.' : 'Remove it.',
    },
  ];
}

function deprecatedNotes(field: string, table: TomlDocument): readonly FieldNote[] {
  const notes: FieldNote[] = [];
  if (table['allow_internet'] !== undefined) {
    const isUsed = table['network_mode'] === undefined && table['allowed_hosts'] === undefined;
    notes.push({
      code: 'FIELD_DEPRECATED',
      field: `${field}.allow_internet`,
      message: isUsed ? 'is an older spelling' : 'is ignored beside network_mode or allowed_hosts',
      remedy: 'Write network_mode = "public" or "no-network".',
    });
  }
  for (const old of ['memory', 'storage'])
    if (table[old] !== undefined)
      notes.push({
        code: 'FIELD_DEPRECATED',
        field: `${field}.${old}`,
        message:
          typeof table[old] === 'string' ? 'is an older spelling' : 'is ignored: it is no text',
        remedy: `Write ${old}_mb, in MiB.`,
      });
  return notes;
}

const limits = ['cpus', 'memory_mb', 'storage_mb', 'gpus'];
const timeouts = ['timeout_sec', 'build_timeout_sec'];

function doubtfulNotes(field: string, table: TomlDocument): readonly FieldNote[] {
  const note = (key: string, message: string): FieldNote => ({
    code: 'FIELD_DOUBTFUL',
    field: `${field}.${key}`,
    message,
    remedy: 'Give a positive number, or leave the field out.',
  });
  return [
    ...limits
      .filter((key) => Number(table[key]) < 0 || (key !== 'gpus' && isZero(table[key])))
      .map((key) => note(key, `limits nothing at ${String(table[key])}`)),
    ...timeouts
      .filter((key) => Number(table[key]) < 0 || isZero(table[key]))
      .map((key) => note(key, `ends at once at ${String(table[key])}`)),
  ];
}

function isZero(value: unknown): boolean {
  return (
    (typeof value === 'number' || typeof value === 'string') && value !== '' && Number(value) === 0
  );
}

function overlapNotes(config: TaskConfig): readonly FieldNote[] {
  const collections = [
    { field: 'artifacts', artifacts: config.artifacts },
    ...config.steps.map((step, index) => ({
      field: `steps[${index}].artifacts`,
      artifacts: [...config.artifacts, ...step.artifacts],
    })),
  ];
  const seen = new Set<string>();
  return collections.flatMap(({ field, artifacts }) =>
    findOverlaps(artifacts).flatMap((message): FieldNote[] => {
      if (seen.has(message)) return [];
      seen.add(message);
      const remedy = 'Give one of them another destination, or leave it out: the first one wins.';
      return [{ code: 'ARTIFACTS_OVERLAP', field, message, remedy }];
    }),
  );
}

function unknownNote(field: string): FieldNote {
  return {
    code: 'FIELD_UNKNOWN',
    field,
    message: 'is no field of the task format here, and is ignored',
    remedy: 'Check the spelling and the table it stands in, or move it to [metadata].',
  };
}
