/** A plugin by its name in a configuration: `path/file.js:run`. Its module is imported when it is first needed. */
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { messageOf, RolloutError } from '../../core/errors.ts';
import type { Logger } from '../../core/logger.ts';
import { readCodeReference } from '../../wire/runner/code-reference.ts';
import type { AbortHook, AbortHookLookup } from '../abort/abort-hook.ts';
import type { AgentPluginModule } from '../agent-plugin.ts';

export interface PluginReference {
  readonly file: string;
  /** What `run` is called there. */
  readonly name: string;
}

/** PLUGIN_INVALID for what names nothing. */
export function readPluginReference(text: string): PluginReference {
  const reference = readCodeReference(text);
  if (reference?.file != null) return { file: path.resolve(reference.file), name: reference.name };
  throw new RolloutError('PLUGIN_INVALID', `${JSON.stringify(text)} names no function of a file`, {
    ...{ phase: 'config', field: 'agent' },
    remedy: 'Name it as path/file.js:run.',
  });
}

/** PLUGIN_INVALID for a module that cannot be loaded. */
export async function importPlugin({
  file,
  name,
}: PluginReference): Promise<Readonly<Record<string, unknown>>> {
  try {
    return (await import(pathToFileURL(file).href)) as Readonly<Record<string, unknown>>;
  } catch (error) {
    throw new RolloutError('PLUGIN_INVALID', `${file} cannot be loaded: ${messageOf(error)}`, {
      ...{ phase: 'config', field: 'agent', cause: error },
      remedy: `Make ${path.basename(file)} a module that exports ${name}.`,
    });
  }
}

/** PLUGIN_INVALID for a module that cannot be loaded or does not export it. */
export async function loadRun(reference: PluginReference): Promise<AgentPluginModule['run']> {
  return (await loadFunction(reference)) as AgentPluginModule['run'];
}

/** As `loadRun`, for functions of any kind, such as hooks. What it takes and gives is its caller's word. */
export async function loadFunction(reference: PluginReference): Promise<unknown> {
  const found = (await importPlugin(reference))[reference.name];
  if (typeof found === 'function') return found;
  throw new RolloutError('PLUGIN_INVALID', `${reference.file} exports no ${reference.name}`, {
    ...{ phase: 'config', field: 'agent' },
    remedy: `Export it, as export async function ${reference.name}(input).`,
  });
}

type Abort = NonNullable<AgentPluginModule['abort']>;

export interface PluginContext {
  /** The plugin's own section of the configuration. */
  readonly options: Readonly<Record<string, unknown>>;
  readonly logger: Logger;
}

/** The `abort` beside a plugin's `run`, looked up again at every abort. */
export function siblingAbort(reference: PluginReference, context: PluginContext): AbortHookLookup {
  return async () => {
    const abort = (await importPlugin(reference))['abort'];
    if (typeof abort !== 'function') return null;
    return hookOf(abort as Abort, context);
  };
}

/** For a plugin that is no module of its own. null = it has none. */
export function ownAbort(abort: Abort | null, context: PluginContext): AbortHookLookup {
  return () => Promise.resolve(abort === null ? null : hookOf(abort, context));
}

function hookOf(abort: Abort, context: PluginContext): AbortHook {
  return async (request, signal) => {
    const answer = await abort({ ...request, ...context, signal });
    return { cancelled: answer?.cancelled ?? null, confirmed: answer?.confirmed ?? [] };
  };
}
