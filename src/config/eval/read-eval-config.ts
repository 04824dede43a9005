/**
 * The configuration of `slipway eval run`: its own tables, and beside them those of slipway.toml for the server that it starts. Everything that is wrong
 * is reported at once; a key that nobody knows is named, with the nearest one that is known.
 */
import { basename, dirname, extname, resolve } from 'node:path';
import { RolloutError } from '../../core/errors.ts';
import { readDocument } from '../document.ts';
import { isFields, type Fields } from '../fields.ts';
import type { Machine } from '../machine.ts';
import { Problems } from '../problems.ts';
import { nearest } from '../serve/nearest-name.ts';
import { settingRows } from '../serve/setting-table.ts';
import { evalSettings, keptKeys, ownTables, type EvalKey } from './eval-settings.ts';

export interface EvalFlags {
  readonly name?: string;
  readonly output?: string;
  readonly datasetFile?: string;
}

export interface EvalConfig {
  /** Names the folder of the evaluation. */
  readonly name: string;
  /** Absolute; holds one folder per evaluation. */
  readonly outputDir: string;
  /** Absolute. */
  readonly datasetFile: string;
  /** null = metadata where the file has such a column. */
  readonly mode: 'metadata' | 'prompt' | null;
  readonly limit: number | null;
  readonly repeats: number;
  readonly batchSize: number | null;
  readonly passThreshold: number;
  readonly agentTimeoutSec: number | null;
  readonly graderTimeoutSec: number | null;
  /** Longest time of one run of a row, everything included. */
  readonly itemTimeoutMs: number;
  /** null = the rows need no model. */
  readonly modelUrl: string | null;
  readonly modelName: string | null;
  /** Place of the key. */
  readonly modelKey: string | null;
  /** null = a server in this process. */
  readonly serverUrl: string | null;
  /** Place of the key. */
  readonly serverKey: string | null;
  /** Variables for the server in this process. */
  readonly variables: Readonly<Record<string, string>>;
  readonly requiredSecrets: readonly string[];
  /** Tables of slipway.toml. */
  readonly serveDocument: Fields;
  /** Absolute. */
  readonly file: string;
  readonly baseDir: string;
  readonly warnings: readonly string[];
}

export const defaultOutputDir = '.slipway/evals';

/** Of one item, where the configuration sets no limit: beyond its parts, and without them. */
const overheadMs = 60_000;
const unlimitedItemMs = 3_600_000;

/** CONFIG_INVALID lists everything that is wrong. */
export async function readEvalConfig(
  path: string,
  flags: EvalFlags,
  machine: Machine,
): Promise<EvalConfig> {
  const file = resolve(machine.cwd, path);
  if (extname(file).toLowerCase() !== '.toml')
    throw new RolloutError('CONFIG_INVALID', `${file}: an evaluation is a TOML file`, {
      phase: 'config',
      field: 'CONFIG',
      remedy: 'Name a .toml file.',
    });
  return compileEvalConfig({ flags, document: await readDocument(file, 'CONFIG'), file }, machine);
}

export function compileEvalConfig(
  request: { readonly flags: EvalFlags; readonly document: Fields; readonly file: string },
  machine: Machine,
): EvalConfig {
  const { flags, document, file } = request;
  const baseDir = dirname(file);
  const problems = new Problems();
  const { found, serveDocument, warnings: ineffective } = sort(document, problems);
  const warnings = [...ineffective];
  const values = readValues(found, { baseDir, problems });
  const value = <K extends EvalKey>(key: K): (typeof evalSettings)[K]['fallback'] =>
    values.get(key) as (typeof evalSettings)[K]['fallback'];

  const name = flags.name ?? basename(file, extname(file));
  if (!/^[A-Za-z0-9][A-Za-z0-9_.-]{0,99}$/.test(name))
    problems.add(
      flags.name === undefined ? 'CONFIG' : '--name',
      `${JSON.stringify(name)} cannot name a folder of results`,
      'Give --name NAME: up to 100 letters, digits, _ . -',
    );
  const dataset = value('experiment.dataset');
  if (flags.datasetFile === undefined && dataset === null)
    problems.add(
      'experiment.dataset',
      'no dataset is named',
      'Name a .jsonl, .csv or .parquet file there, or with --dataset-file FILE.',
    );
  const modelUrl = value('model.url');
  checkUrl('model.url', modelUrl, problems);
  const serverUrl = value('server_url');
  checkUrl('server_url', serverUrl, problems);
  if (value('model.key') !== null && modelUrl === null)
    problems.add('model.key', 'there is no model.url', 'Name the endpoint: model.url = "URL".');
  const given = { serverUrl, serveDocument };
  const named = value('model.name');
  const noName = whyNoModelName(given);
  if (named !== null && noName !== null) problems.add('model.name', noName.why, noName.remedy);
  // Every configuration of Osmosis has it: where it cannot be used, that is no mistake.
  const path = named === null ? value('experiment.model_path') : null;
  if (path !== null && noName !== null)
    warnings.push(`experiment.model_path has no effect: ${noName.why}`);
  const modelName = named ?? (noName === null ? path : null);
  checkServer({ ...given, serverKey: value('server_key') }, problems);
  const variables = readVariables(document['env'], problems);
  if (serverUrl !== null && Object.keys(variables).length > 0)
    warnings.push('env has no effect on the server at server_url');
  const requiredSecrets = value('secrets.required');
  for (const secret of requiredSecrets)
    if ((machine.variables[secret] ?? '') === '')
      problems.add(
        'secrets.required',
        `the variable ${secret} is not set`,
        `Set it in the environment, or in the file of --secrets-file.`,
      );
  problems.throwIfAny();

  const agentTimeoutSec = value('evaluation.agent_workflow_timeout_s');
  const graderTimeoutSec = value('evaluation.grader_timeout_s');
  const itemTimeoutSec = value('evaluation.item_timeout_s');
  const isLimited = agentTimeoutSec !== null && graderTimeoutSec !== null;
  return {
    name,
    outputDir: resolve(machine.cwd, flags.output ?? defaultOutputDir),
    datasetFile:
      flags.datasetFile === undefined
        ? resolve(baseDir, dataset ?? '')
        : resolve(machine.cwd, flags.datasetFile),
    mode: value('evaluation.mode'),
    limit: value('evaluation.limit'),
    repeats: value('evaluation.n'),
    batchSize: value('evaluation.batch_size'),
    passThreshold: value('evaluation.pass_threshold'),
    ...{ agentTimeoutSec, graderTimeoutSec },
    itemTimeoutMs:
      itemTimeoutSec !== null
        ? itemTimeoutSec * 1000
        : isLimited
          ? (agentTimeoutSec + graderTimeoutSec) * 1000 + overheadMs
          : unlimitedItemMs,
    ...{ modelUrl, modelName, modelKey: value('model.key') },
    ...{ serverUrl, serverKey: value('server_key') },
    ...{ variables, requiredSecrets, serveDocument, file, baseDir, warnings },
  };
}

/** Keys of the evaluation by dotted name, and the tables that belong to the server. */
function sort(
  document: Fields,
  problems: Problems,
): {
  readonly found: ReadonlyMap<string, unknown>;
  readonly serveDocument: Fields;
  readonly warnings: readonly string[];
} {
  const found = new Map<string, unknown>();
  const serveDocument: Fields = {};
  const warnings: string[] = [];
  const own = new Set<string>([...Object.keys(evalSettings), ...Object.keys(keptKeys)]);
  const ownSections = new Set([...own].flatMap((key) => key.split('.').slice(0, -1)));
  const serveTables = new Set(settingRows.map(({ key }) => key.split('.')[0] ?? ''));
  for (const table of Object.keys(ownTables)) serveTables.delete(table);
  const take = (key: string, value: unknown): void => {
    const kept = keptKeys[key];
    if (kept !== undefined) warnings.push(`${key} ${kept}`);
    else if (own.has(key)) found.set(key, value);
    else addUnknown(key, own, problems);
  };
  for (const [name, value] of Object.entries(document)) {
    const instead = ownTables[name];
    if (instead !== undefined) problems.add(name, 'is not for an evaluation to set', instead);
    else if (name === 'env') continue;
    else if (name === 'advanced')
      for (const key of Object.keys(isFields(value) ? value : { '': null }))
        warnings.push(`${`advanced.${key}`.replace(/\.$/, '')} has no effect`);
    else if (serveTables.has(name)) serveDocument[name] = value;
    else if (!ownSections.has(name) && !own.has(name))
      addUnknown(name, [...ownSections, ...own, ...serveTables, 'env', 'advanced'], problems);
    else if (!ownSections.has(name)) take(name, value);
    else if (!isFields(value))
      problems.add(name, 'is a table', `Write [${name}] and its keys below.`);
    else for (const [key, one] of Object.entries(value)) take(`${name}.${key}`, one);
  }
  return { found, serveDocument, warnings };
}

function readValues(
  found: ReadonlyMap<string, unknown>,
  { baseDir, problems }: { readonly baseDir: string; readonly problems: Problems },
): ReadonlyMap<string, unknown> {
  return new Map(
    Object.entries(evalSettings).map(([key, setting]) => {
      const kind = setting.kind as {
        read(value: unknown, isText: boolean): { value: unknown } | { problem: string };
        locate?(value: unknown, dir: string): unknown;
      };
      const given = found.get(key);
      if (given === undefined) return [key, setting.fallback];
      const read = kind.read(given, false);
      if ('problem' in read) {
        problems.add(key, read.problem, `Correct ${key}.`);
        return [key, setting.fallback];
      }
      return [key, kind.locate?.(read.value, baseDir) ?? read.value];
    }),
  );
}

function checkUrl(key: string, url: string | null, problems: Problems): void {
  const parsed = url === null ? null : URL.parse(url);
  if (url === null) return;
  if (parsed !== null && /^https?:$/.test(parsed.protocol)) {
    if (parsed.username === '' && parsed.password === '') return;
    const place = key === 'model.url' ? 'model.key' : 'server_key';
    problems.add(key, 'holds a user or a password', `Name the place of a key: ${place}.`);
    return;
  }
  problems.add(key, 'is not an http(s) address', 'Write it as http://HOST:PORT/v1.');
}

const namedModels: ReadonlySet<string> = new Set(['native', 'harbor']);

interface ChosenServer {
  readonly serverUrl: string | null;
  readonly serveDocument: Fields;
}

/** null = the server of the evaluation takes the name of a model. */
function whyNoModelName({
  serverUrl,
  serveDocument,
}: ChosenServer): { readonly why: string; readonly remedy: string } | null {
  if (serverUrl !== null)
    return {
      why: 'the server at server_url decides it',
      remedy: 'Set backend.native.model there, or harbor_model in the metadata of the rows.',
    };
  const backend = isFields(serveDocument['backend']) ? serveDocument['backend'] : {};
  const kind = typeof backend['kind'] === 'string' ? backend['kind'] : 'native';
  if (!namedModels.has(kind))
    return {
      why: 'only the backends native and harbor take the name of a model',
      remedy: 'Give it to the workflow: [backend.local.workflow_config].',
    };
  const chosen = isFields(backend[kind]) ? backend[kind] : {};
  if (chosen['model'] === undefined) return null;
  return { why: `backend.${kind}.model names one too`, remedy: 'Remove one of them.' };
}

/** What a server that runs already has decided cannot be decided here. */
function checkServer(
  { serverUrl, serverKey, serveDocument }: ChosenServer & { readonly serverKey: string | null },
  problems: Problems,
): void {
  if (serverUrl === null) {
    if (serverKey !== null)
      problems.add('server_key', 'there is no server_url', 'Name the server: server_url = "URL".');
    return;
  }
  for (const table of Object.keys(serveDocument))
    problems.add(
      table,
      'is decided by the server at server_url',
      'Configure it there, or remove server_url.',
    );
}

function readVariables(value: unknown, problems: Problems): Readonly<Record<string, string>> {
  if (value === undefined) return {};
  if (!isFields(value)) {
    problems.add('env', 'is a table', 'Write [env] and NAME = "value" below.');
    return {};
  }
  const variables: Record<string, string> = {};
  for (const [name, one] of Object.entries(value)) {
    const isScalar = ['string', 'number', 'boolean'].includes(typeof one);
    if (!isScalar || !/^[A-Za-z_][A-Za-z0-9_]*$/.test(name))
      problems.add(`env.${name}`, 'expected NAME = "value"', 'Write the value as a text.');
    else variables[name] = String(one);
  }
  return variables;
}

function addUnknown(key: string, known: Iterable<string>, problems: Problems): void {
  const near = nearest(key, known);
  const remedy = near === null ? `Remove ${key}.` : `Did you mean ${near}?`;
  problems.add(key, 'there is no such setting', remedy);
}
