/**
 * `slipway preflight`: what would go wrong when the server starts or a job is submitted, found out before. Every check stands for itself: one that fails
 * takes only those with it that need what it found. Nothing is left behind: no sandbox, no file, no listener.
 */
import { readServeConfig, type ServeConfig } from '../config/serve/read-serve-config.ts';
import { readSecrets } from '../config/serve/read-secrets.ts';
import { RolloutError } from '../core/errors.ts';
import { Scope } from '../core/scope.ts';
import { SecretMask } from '../telemetry/secret-mask.ts';
import { UrlPolicy } from '../wire/url-policy.ts';
import {
  preflightChecks,
  type PreflightCheckName,
  type PreflightReport,
} from '../wire/preflight-report.ts';
import type { AppPorts } from './ports.ts';
import { CheckRun } from './preflight/check-run.ts';
import { checkBackend, checkGrader } from './preflight/backend-check.ts';
import { checkDataFolder } from './preflight/data-folder-check.ts';
import { checkListeners } from './preflight/listener-check.ts';
import {
  quickMs,
  sourcesOf,
  type PreflightOptions,
  type PreflightParts,
} from './preflight/parts.ts';
import { scratchFolder } from './preflight/scratch.ts';
import { checkCallbacks, checkModelAddress, checkServices } from './preflight/service-checks.ts';
import { checkStore } from './preflight/store-check.ts';
import { checkTasks } from './preflight/task-checks.ts';
import { trialSettings, type TrialSettings } from './preflight/trial-settings.ts';
import { passed } from './preflight/verdict.ts';
import { openCallers } from './serve/callers.ts';
import { otlpHeadersOf } from './serve/key-sources.ts';

/** A workflow may load a lot. */
const backendMs = 120_000;
const storeMs = 60_000;

/** Checks that are only made on what others found. */
const needs: Partial<Record<PreflightCheckName, readonly PreflightCheckName[]>> = {
  sandbox: ['tasks'],
  workflow: ['tasks', 'sandbox'],
  gateway: ['tasks', 'sandbox'],
};

/** Rejects only with the reason of `signal`: what is wrong is in the report. */
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
  const parts: PreflightParts = { options, ports, run, mask, wants };
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

async function checkedConfig({ options, ports, run }: PreflightParts): Promise<ServeConfig | null> {
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

async function checkAll(config: ServeConfig, parts: PreflightParts): Promise<void> {
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
      ...{ name: 'store', limitMs: storeMs },
      work: (signal) => checkStore(config, { ports, scratchDir: storeDir }, signal),
    });
  if (wants('keys'))
    await run.check({ name: 'keys', limitMs: quickMs, work: () => checkKeys(config, parts) });
  if (wants('listeners'))
    await run.check({ name: 'listeners', limitMs: quickMs, work: () => checkListeners(config) });
  const settings = await checkedBackend(config, parts, scratchDir);
  await checkServices(config, parts);
  await checkCallbacks(config, parts);
  await checkModelAddress(config, parts, settings);
  await checkTasks(
    {
      ...{ config, settings, wants, scratchDir },
      sources: {
        references: options.tasks,
        datasetFile: options.datasetFile,
        cwd: ports.machine.cwd,
      },
    },
    { ports, run },
  );
}

async function checkKeys(config: ServeConfig, { ports, mask }: PreflightParts) {
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
  { ports, run, options, wants }: PreflightParts,
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
