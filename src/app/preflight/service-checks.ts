/** The services that a server talks to: engines, collectors, receivers of callbacks, and the model of the rollouts. */
import { readSecrets } from '../../config/serve/read-secrets.ts';
import type { ServeConfig } from '../../config/serve/read-serve-config.ts';
import { openTracing } from '../../telemetry/open-tracing.ts';
import { urlParts, UrlPolicy } from '../../wire/url-policy.ts';
import { openLoadEngine } from '../serve/engine-load.ts';
import { otlpHeadersOf } from '../serve/key-sources.ts';
import { checkModel } from './model-check.ts';
import { quickMs, sourcesOf, type PreflightParts } from './parts.ts';
import { checkReach, originOf } from './reach-check.ts';
import { modelName, type TrialSettings } from './trial-settings.ts';
import { passed } from './verdict.ts';

const modelMs = 60_000;

/** It may hold a key, and what is said of an address names all of it. */
function pathOf(url: string): readonly string[] {
  const path = urlParts(url)?.path.replace(/(?:\/chat\/completions)?\/*$/, '');
  return path === undefined ? [] : [path];
}

export async function checkServices(
  config: ServeConfig,
  { ports, run, mask, wants }: PreflightParts,
): Promise<void> {
  const sources = sourcesOf(config, ports);
  const { otlpUrl, serviceName } = config.telemetry;
  if (wants('engine')) {
    if (config.engine.url === null) run.skip('engine', 'engine.url is not set');
    else {
      mask.add(pathOf(config.engine.url));
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

export async function checkCallbacks(
  config: ServeConfig,
  { run, options, wants }: PreflightParts,
): Promise<void> {
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

export async function checkModelAddress(
  config: ServeConfig,
  { ports, run, options, mask, wants }: PreflightParts,
  settings: TrialSettings | null,
): Promise<void> {
  if (!wants('model')) return;
  const { modelUrl: url, modelKeyFile } = options;
  if (url === null) {
    run.skip('model', 'no --model-url is given');
    return;
  }
  mask.add(pathOf(url));
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
        { url, key, model: settings?.model ?? modelName(null) },
        { openEngine, policy },
        signal,
      );
    },
  });
}
