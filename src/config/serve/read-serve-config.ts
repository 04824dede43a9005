/**
 * The configuration of `slipway serve`: flags over variables over the file over defaults, setting by setting. Everything that is wrong is reported at
 * once; a key that the file does not know is named, with the nearest one that it does.
 */
import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { readDocument } from '../document.ts';
import { isFields, type Fields } from '../fields.ts';
import type { Machine } from '../machine.ts';
import { Problems } from '../problems.ts';
import { nearest } from './nearest-name.ts';
import { sectionKeys, settingRows, tenantRows, type SettingRow } from './setting-table.ts';
import type { ServeSettings, TenantSettings } from './settings.ts';

export const defaultConfigFile = 'slipway.toml';

/** So long before the trainer gives a trial up it has its answer. */
export const answerMarginMs = 60_000;

/** As the command line gives them, by flag with its dashes. */
export type ServeFlags = Readonly<Record<string, string | readonly string[] | boolean | undefined>>;

export interface SettingOrigin {
  readonly key: string;
  readonly value: unknown;
  /** `flag --port`, `variable SLIPWAY_LISTEN_PORT`, `file slipway.toml`, `default`. */
  readonly from: string;
}

export interface ServeConfig extends Omit<ServeSettings, 'dataDir'> {
  /** Absolute. */
  readonly dataDir: string;
  readonly tenants: Readonly<Record<string, TenantSettings>>;
  /** Absolute; null = there is no file. */
  readonly file: string | null;
  /** Where relative paths of users' code, of keys and of tasks in metadata start: the folder of the file, or the current one. */
  readonly baseDir: string;
  readonly origins: readonly SettingOrigin[];
}

/** CONFIG_INVALID lists everything that is wrong. */
export async function readServeConfig(flags: ServeFlags, machine: Machine): Promise<ServeConfig> {
  const flag = flags['--config'];
  const named = typeof flag === 'string' ? flag : (machine.variables['SLIPWAY_CONFIG'] ?? '');
  const found = resolve(machine.cwd, named === '' ? defaultConfigFile : named);
  const file = named !== '' || existsSync(found) ? found : null;
  const document = file === null ? {} : await readDocument(file, '--config');
  return compileServeConfig({ flags, document, file }, machine);
}

export function compileServeConfig(
  given: { readonly flags: ServeFlags; readonly document: Fields; readonly file: string | null },
  machine: Machine,
): ServeConfig {
  const { flags, document, file } = given;
  const problems = new Problems();
  const baseDir = file === null ? machine.cwd : resolve(file, '..');
  const known = new Set(['--config', ...settingRows.map(({ flag }) => flag)]);
  for (const flag of Object.keys(flags)) if (!known.has(flag)) addUnknown(flag, known, problems);
  const inFile = flatten(document, problems);
  const values = new Map<string, unknown>();
  const origins: SettingOrigin[] = [];
  for (const row of settingRows) {
    const candidates: readonly (readonly [value: unknown, from: string, isText: boolean])[] = [
      [flags[row.flag], `flag ${row.flag}`, true],
      ...[row.variable, row.setting.otherVariable].flatMap((name) =>
        // An empty variable counts as not set.
        name !== undefined && (machine.variables[name] ?? '') !== ''
          ? [[machine.variables[name], `variable ${name}`, true] as const]
          : [],
      ),
      [inFile.get(row.key), `file ${file ?? ''}`, false],
    ];
    const [value, from, isText] = candidates.find(([one]) => one !== undefined) ?? [];
    if (value === undefined || from === undefined) {
      const { fallback } = row.setting;
      const made = 'value' in fallback ? fallback.value : fallback.of((path) => values.get(path));
      values.set(row.path, made);
      origins.push({ key: row.key, value: row.setting.kind.show(made), from: 'default' });
      continue;
    }
    const read = row.setting.kind.read(value, isText === true);
    if ('problem' in read) {
      problems.add(from.startsWith('file ') ? row.key : from, read.problem, `Correct ${row.key}.`);
      // What depends on it must not be reported too.
      values.set(row.path, 'value' in row.setting.fallback ? row.setting.fallback.value : 0);
      continue;
    }
    const { kind } = row.setting;
    const located =
      kind.locate?.(read.value, isText === true ? machine.cwd : baseDir) ?? read.value;
    values.set(row.path, located);
    origins.push({ key: row.key, value: kind.show(located), from });
  }
  const tenants = compileTenants(document['tenants'], { file, baseDir, origins, problems });
  const tree = asTree(values) as unknown as ServeSettings;
  if (tree.engine.kvLow > tree.engine.kvHigh)
    problems.add('engine.kv_low', 'is above engine.kv_high', 'Set it to at most engine.kv_high.');
  checkWorkerPorts(tree, problems);
  checkTrainerTimeout(tree, problems);
  problems.throwIfAny();
  const dataDir = tree.dataDir ?? resolve(machine.stateDir, 'server');
  const shown = origins.map((row) => (row.key === 'data_dir' ? { ...row, value: dataDir } : row));
  return deepFreeze({ ...tree, dataDir, tenants, file, baseDir, origins: shown });
}

/** The server ends a trial before its client gives it up, and the agent before that. */
function checkTrainerTimeout({ agentServer }: ServeSettings, problems: Problems): void {
  const { agentTimeoutSec, trainerTimeoutMs } = agentServer;
  if (agentTimeoutSec === null || agentTimeoutSec * 1000 < trainerTimeoutMs - answerMarginMs)
    return;
  problems.add(
    'agent_server.agent_timeout_sec',
    `is not below agent_server.trainer_timeout_sec less ${answerMarginMs / 1000} s`,
    'Lower it, or raise the timeout of the trainer (AGENT_TRIAL_TIMEOUT) and trainer_timeout_sec with it.',
  );
}

/** Each process of the gateway has the port after the one before. */
function checkWorkerPorts({ gateway, listen }: ServeSettings, problems: Problems): void {
  const { port, dataPort } = listen;
  const { workers } = gateway;
  if (workers === 0 || dataPort === 0) return;
  const last = dataPort + workers - 1;
  if (last > 65_535)
    problems.add(
      'gateway.workers',
      `the ports would go up to ${last}`,
      'Choose a lower listen.data_port, or 0 for any free ports.',
    );
  if (port > dataPort && port <= last)
    problems.add(
      'gateway.workers',
      `the ports from ${dataPort} to ${last} include listen.port`,
      'Move listen.port or listen.data_port.',
    );
}

/** Values by dotted key; sections and keys that nobody knows are problems. */
function flatten(document: Fields, problems: Problems): ReadonlyMap<string, unknown> {
  const found = new Map<string, unknown>();
  const known = new Set([...settingRows.map(({ key }) => key), ...sectionKeys, 'tenants']);
  const visit = (fields: Fields, before: string): void => {
    for (const [name, value] of Object.entries(fields)) {
      const key = before + name;
      if (key === 'tenants') continue;
      if (!known.has(key)) addUnknown(key, known, problems);
      else if (!sectionKeys.has(key)) found.set(key, value);
      else if (isFields(value)) visit(value, `${key}.`);
      else problems.add(key, 'is a table', `Write [${key}] and its keys below.`);
    }
  };
  visit(document, '');
  return found;
}

function addUnknown(key: string, known: ReadonlySet<string>, problems: Problems): void {
  const near = nearest(key, known);
  const remedy = near === null ? `Remove ${key}.` : `Did you mean ${near}?`;
  problems.add(key, 'there is no such setting', remedy);
}

function compileTenants(
  tenants: unknown,
  {
    file,
    baseDir,
    origins,
    problems,
  }: {
    readonly file: string | null;
    readonly baseDir: string;
    readonly origins: SettingOrigin[];
    readonly problems: Problems;
  },
): Readonly<Record<string, TenantSettings>> {
  if (tenants === undefined) return {};
  if (!isFields(tenants)) {
    problems.add('tenants', 'is a table', 'Write [tenants.NAME] and its keys below.');
    return {};
  }
  const compiled: Record<string, TenantSettings> = {};
  for (const [name, fields] of Object.entries(tenants)) {
    const at = `tenants.${name}`;
    if (!/^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$/.test(name))
      problems.add(at, 'a tenant is named by up to 64 letters, digits, _ . -', 'Rename it.');
    if (!isFields(fields)) {
      problems.add(at, 'is a table', `Write [${at}] and its keys below.`);
      continue;
    }
    const known = new Set(tenantRows.map(({ key }) => key));
    for (const key of Object.keys(fields))
      if (!known.has(key))
        addUnknown(`${at}.${key}`, new Set([...known].map((one) => `${at}.${one}`)), problems);
    const values = tenantRows.map((row) =>
      readOfTenant(row, fields, { at, file, baseDir, origins, problems }),
    );
    compiled[name] = Object.fromEntries(values) as unknown as TenantSettings;
  }
  return compiled;
}

function readOfTenant(
  row: SettingRow,
  fields: Fields,
  at: {
    readonly at: string;
    readonly file: string | null;
    readonly baseDir: string;
    readonly origins: SettingOrigin[];
    readonly problems: Problems;
  },
): readonly [string, unknown] {
  const { kind, fallback } = row.setting;
  const preset = 'value' in fallback ? fallback.value : null;
  const given = fields[row.key];
  const read = given === undefined ? { value: preset } : kind.read(given, false);
  if ('problem' in read) {
    at.problems.add(`${at.at}.${row.key}`, read.problem, `Correct ${at.at}.${row.key}.`);
    return [row.path, preset];
  }
  const located = kind.locate?.(read.value, at.baseDir) ?? read.value;
  at.origins.push({
    key: `${at.at}.${row.key}`,
    value: kind.show(located),
    from: given === undefined ? 'default' : `file ${at.file ?? ''}`,
  });
  return [row.path, located];
}

function asTree(values: ReadonlyMap<string, unknown>): Record<string, unknown> {
  const tree: Record<string, unknown> = {};
  for (const [path, value] of values) {
    const names = path.split('.');
    let branch = tree;
    for (const name of names.slice(0, -1)) {
      branch[name] ??= {};
      branch = branch[name] as Record<string, unknown>;
    }
    branch[names.at(-1) ?? ''] = value;
  }
  return tree;
}

function deepFreeze<T>(value: T): T {
  if (typeof value === 'object' && value !== null && !Object.isFrozen(value)) {
    Object.freeze(value);
    for (const part of Object.values(value)) deepFreeze(part);
  }
  return value;
}
