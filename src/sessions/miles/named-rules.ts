/** Matchers, pickers and post-processors by their names, or as functions of the operator's own modules: `path/to/file.ts:name`. */
import { pathToFileURL } from 'node:url';
import { messageOf, RolloutError } from '../../core/errors.ts';
import { readCodeReference } from '../../wire/runner/code-reference.ts';
import { matchers, type MessageMatcher } from './message-matcher.ts';
import {
  defaultPostprocess,
  dropRetries,
  type SamplePicker,
  type SamplePostprocessor,
} from './sample-hooks.ts';

type AnyFunction = (...given: never[]) => unknown;

export async function openMatcher(name: string): Promise<MessageMatcher> {
  return (await named(name, { field: 'sessions.matcher', known: matchers })) as MessageMatcher;
}

export async function openPicker(name: string): Promise<SamplePicker> {
  const known = { drop_retries: dropRetries };
  return (await named(name, { field: 'sessions.picker', known })) as SamplePicker;
}

export async function openPostprocessor(name: string): Promise<SamplePostprocessor> {
  const known = { default_postprocess: defaultPostprocess };
  return (await named(name, { field: 'sessions.postprocessor', known })) as SamplePostprocessor;
}

async function named(
  name: string,
  options: { readonly field: string; readonly known: Readonly<Record<string, AnyFunction>> },
): Promise<AnyFunction> {
  const { field, known } = options;
  if (Object.hasOwn(known, name) && known[name] !== undefined) return known[name];
  const refuse = (problem: string, cause?: unknown): RolloutError =>
    new RolloutError('CONFIG_INVALID', problem, {
      ...{ phase: 'config', field },
      remedy: `Name one of ${Object.keys(known).join(', ')}, or a synchronous function as path/to/file.ts:name.`,
      ...(cause !== undefined && { cause }),
    });
  const reference = readCodeReference(name);
  if (reference?.file == null) throw refuse(`nothing is called ${JSON.stringify(name)}`);
  let module: Readonly<Record<string, unknown>>;
  try {
    module = (await import(pathToFileURL(reference.file).href)) as typeof module;
  } catch (error) {
    throw refuse(`${reference.file} cannot be loaded: ${messageOf(error)}`, error);
  }
  const found = module[reference.name];
  if (typeof found !== 'function') throw refuse(`${name} is no function`);
  if (found.constructor.name === 'AsyncFunction') throw refuse(`${name} is not synchronous`);
  return found as AnyFunction;
}
