/**
 * `slipway preflight`: what would go wrong when the server starts or a job is submitted, found out before. Every check stands for itself: one that fails
 * takes only those with it that need what it found. Nothing is left behind: no sandbox, no file, no listener.
 */
import {
  readServeConfig,
  type ServeConfig,
  type ServeFlags,
} from '../config/serve/read-serve-config.ts';
import { readSecrets } from '../config/serve/read-secrets.ts';
import { RolloutError } from '../core/errors.ts';
import { Scope } from '../core/scope.ts';
import { openTracing } from '../telemetry/open-tracing.ts';
import { SecretMask } from '../telemetry/secret-mask.ts';
import { UrlPolicy } from '../wire/url-policy.ts';
import {
  preflightChecks,
  type PreflightCheckName,
  type PreflightReport,
} from '../wire/preflight-report.ts';
import type { AppPorts } from './ports.ts';
import { CheckRun, type CheckObserver } from './preflight/check-run.ts';
import { checkBackend, checkGrader } from './preflight/backend-check.ts';
import { checkDataFolder } from './preflight/data-folder-check.ts';
import { checkListeners } from './preflight/listener-check.ts';
import { checkModel } from './preflight/model-check.ts';
import { checkReach, originOf } from './preflight/reach-check.ts';
import { scratchFolder } from './preflight/scratch.ts';
import { checkStore } from './preflight/store-check.ts';
import { checkTasks } from './preflight/task-checks.ts';
import { modelName, trialSettings, type TrialSettings } from './preflight/trial-settings.ts';
import { passed } from './preflight/verdict.ts';
import { openCallers } from './serve/callers.ts';
import { openLoadEngine } from './serve/engine-load.ts';
import { otlpHeadersOf } from './serve/key-sources.ts';

export interface PreflightOptions {
  readonly serve: ServeFlags;
  /** As in `metadata.harbor_task`, folders, or whole metadata objects as JSON. */
  readonly tasks: readonly string[];
  /** Rows whose metadata name tasks; absolute, null = none. */
  readonly datasetFile: string | null;
  readonly modelUrl: string | null;
  /** Absolute; null = the key is in OPENAI_API_KEY, if there is one. */
  readonly modelKeyFile: string | null;
  readonly callbackUrls: readonly string[];
  /** A workflow without a grader is meant. */
  readonly needsNoGrader: boolean;
  /** Only these, with what they need; null = all. */
  readonly only: readonly PreflightCheckName[] | null;
  readonly observer?: CheckObserver;
}

const quickMs = 15_000;
/** A workflow may load a lot. */
const backendMs = 120_000;
const modelMs = 60_000;

/** Checks that are only made on what others found. */
const needs: Partial<Record<PreflightCheckName, readonly PreflightCheckName[]>> = {
  sandbox: ['tasks'],
  gateway: ['tasks', 'sandbox'],
};

interface Parts {
  readonly options: PreflightOptions;
  readonly ports: AppPorts;
  readonly run: CheckRun;
  readonly mask: SecretMask;
  readonly wants: (name: PreflightCheckName) => boolean;
}

/** Rejects only with the reason of `signal`, and with CONFIG_INVALID for names of checks that there are not. */
export async function preflight(
  options: PreflightOptions,
  { ports, signal }: { readonly ports: AppPorts; readonly signal: AbortSignal },
): Promise<PreflightReport> {
  const mask = new SecretMask();
  const { observer = {}, only } = options;
  const run = new CheckRun({
    ...{ clock: ports.clock, signal, observer },
    mask: (text) => mask.mask(text),
  });
  const wanted = new Set(only?.flatMap((name) => [name, ...(needs[name] ?? [])]));
  const wants = (name: PreflightCheckName): boolean => only === null || wanted.has(name);
  const parts: Parts = { options, ports, run, mask, wants };
  try {
    const config = await checkedConfig(parts);
    if (config !== null) await checkAll(config, parts);
    else
      for (const name of preflightChecks.filter((one) => one !== 'configuration' && wants(one)))
        run.skip(name, 'the configuration is wrong');
  } finally {
    await run.settle();
  }
  return run.report();
}

async function checkedConfig({ options, ports, run }: Parts): Promise<ServeConfig | null> {
  let config: ServeConfig | null = null;
  await run.check({
    name: 'configuration',
    limitMs: quickMs,
    work: async () => {
      const read = await readServeConfig(options.serve, ports.machine);
      new UrlPolicy(read.callbacks);
      config = read;
      const set = read.origins.filter(({ from }) => from !== 'default').length;
      return passed(`${read.file ?? 'no file'}; ${set} settings differ from their defaults`);
    },
  });
  return config;
}

async function checkAll(config: ServeConfig, parts: Parts): Promise<void> {
  const { ports, run, wants, options } = parts;
  await using scope = new Scope();
  const scratchDir = await scratchFolder(scope);
  const storeDir = await scratchFolder(scope);
  scope.defer(() => run.settle());
  if (wants('data-folder'))
    await run.check({
      ...{ name: 'data-folder', limitMs: quickMs },
      work: () => checkDataFolder(config, ports.locks),
    });
  if (wants('store'))
    await run.check({
      ...{ name: 'store', limitMs: modelMs },
      work: (signal) => checkStore(config, { ports, scratchDir: storeDir }, signal),
    });
  if (wants('keys'))
    await run.check({ name: 'keys', limitMs: quickMs, work: () => checkKeys(config, parts) });
  if (wants('listeners'))
    await run.check({ name: 'listeners', limitMs: quickMs, work: () => checkListeners(config) });
  const settings = await checkedBackend(config, parts, scratchDir);
  await checkServices(config, parts);
  await checkCallbacks(config, parts);
  await checkedModel(config, parts, settings);
  await checkTasks(
    {
      ...{ config, settings, wants },
      sources: {
        references: options.tasks,
        datasetFile: options.datasetFile,
        cwd: ports.machine.cwd,
      },
    },
    { ports, run },
  );
}

async function checkKeys(config: ServeConfig, { ports, mask }: Parts) {
  const sources = sourcesOf(config, ports);
  const callers = await openCallers(config, sources);
  await callers.hideIn(mask);
  const { key } = config.engine;
  const places = key === null ? [] : [key];
  mask.add((await readSecrets({ 'engine.key': places }, sources))['engine.key'] ?? []);
  mask.add(Object.values(await otlpHeadersOf(config, sources)));
  return passed(
    callers.keys.hasKeys
      ? 'all keys can be read'
      : `no caller needs a key: only this machine reaches ${config.listen.host}`,
  );
}

/** Answers what its trials have in common; null where it runs none, or its options are wrong. */
async function checkedBackend(
  config: ServeConfig,
  { ports, run, options, wants }: Parts,
  scratchDir: string,
): Promise<TrialSettings | null> {
  let settings: TrialSettings | null = null;
  try {
    settings = trialSettings(config);
  } catch {
    // The check of the backend tells it.
  }
  if (wants('backend'))
    await run.check({
      ...{ name: 'backend', limitMs: backendMs },
      work: (signal) => checkBackend(config, { ports, scratchDir }, signal),
    });
  if (wants('grader'))
    await run.check({
      ...{ name: 'grader', limitMs: quickMs },
      work: async () => Promise.resolve(checkGrader(config, { needsNone: options.needsNoGrader })),
    });
  return settings;
}

async function checkServices(config: ServeConfig, { ports, run, wants }: Parts): Promise<void> {
  const sources = sourcesOf(config, ports);
  const { otlpUrl, serviceName } = config.telemetry;
  if (wants('engine')) {
    if (config.engine.url === null) run.skip('engine', 'engine.url is not set');
    else
      await run.check({
        ...{ name: 'engine', subject: originOf(config.engine.url), limitMs: quickMs },
        work: async (signal) => {
          const opened = await openLoadEngine(config, { openEngine: ports.openEngine, sources });
          if (opened === null) throw new TypeError('an engine is named');
          try {
            const load = await opened.engine.load(signal);
            const use = load.kvUse === null ? 'unknown' : `${Math.round(load.kvUse * 100)} %`;
            return passed(`tells its load: ${load.runningRequests} running, KV cache ${use}`);
          } finally {
            await opened.engine.destroy(new Error('the check has ended'));
          }
        },
      });
  }
  if (!wants('telemetry')) return;
  if (otlpUrl === null) run.skip('telemetry', 'telemetry.otlp_url is not set');
  else
    await run.check({
      ...{ name: 'telemetry', subject: originOf(otlpUrl), limitMs: quickMs },
      work: async (signal) => {
        const headers = await otlpHeadersOf(config, sources);
        const tracing = await openTracing({
          ...{ otlpUrl, headers, serviceName, instanceId: null, exportTimeoutMs: 1_000 },
        });
        await tracing.close();
        return await checkReach(
          {
            url: otlpUrl,
            what: 'the collector',
            field: 'telemetry.otlp_url',
            headers,
            policy: null,
          },
          signal,
        );
      },
    });
}

async function checkCallbacks(config: ServeConfig, { run, options, wants }: Parts): Promise<void> {
  if (!wants('callbacks')) return;
  if (options.callbackUrls.length === 0) run.skip('callbacks', 'no --callback-url is given');
  const policy = new UrlPolicy(config.callbacks);
  for (const url of options.callbackUrls)
    await run.check({
      ...{ name: 'callbacks', subject: originOf(url), limitMs: quickMs },
      work: (signal) =>
        checkReach({ url, what: 'the callback URL', field: '--callback-url', policy }, signal),
    });
}

async function checkedModel(
  config: ServeConfig,
  { ports, run, options, mask, wants }: Parts,
  settings: TrialSettings | null,
): Promise<void> {
  if (!wants('model')) return;
  const { modelUrl: url, modelKeyFile } = options;
  if (url === null) {
    run.skip('model', 'no --model-url is given');
    return;
  }
  await run.check({
    ...{ name: 'model', subject: originOf(url), limitMs: modelMs },
    work: async (signal) => {
      const field = '--model-key-file';
      const places = modelKeyFile === null ? [] : [`file:${modelKeyFile}`];
      const read = await readSecrets({ [field]: places }, sourcesOf(config, ports));
      const variable = ports.machine.variables['OPENAI_API_KEY'] ?? '';
      const key = read[field]?.[0] ?? (variable === '' ? null : variable);
      if (key !== null) mask.add([key]);
      const policy = new UrlPolicy(config.callbacks);
      const { openEngine } = ports;
      return await checkModel(
        { url, key, model: modelName(settings) },
        { openEngine, policy },
        signal,
      );
    },
  });
}

function sourcesOf({ baseDir }: ServeConfig, { machine }: AppPorts) {
  return { variables: machine.variables, baseDir };
}

/** CONFIG_INVALID lists the names that there are. */
export function checkNames(names: readonly string[]): readonly PreflightCheckName[] {
  return names.map((name) => {
    const known = preflightChecks.find((one) => one === name);
    if (known !== undefined) return known;
    throw new RolloutError('CONFIG_INVALID', `no check is called ${JSON.stringify(name)}`, {
      phase: 'config',
      field: '--only',
      remedy: `Use: ${preflightChecks.join(', ')}.`,
    });
  });
}
