/** Pickers of branches by their names, or as functions of the operator's own modules: `path/to/file.ts:name`. */
import { pathToFileURL } from 'node:url';
import { messageOf, RolloutError } from '../../core/errors.ts';
import { readCodeReference } from '../../wire/runner/code-reference.ts';
import { everyBranch, withoutRetries, type BranchPicker } from './branches.ts';

const known = new Map<string, BranchPicker>([
  ['drop_retries', withoutRetries],
  ['every_branch', everyBranch],
]);

/** CONFIG_INVALID for a name of nothing. What a function gives back is checked when it is used. */
export async function openBranchPicker(name: string): Promise<BranchPicker> {
  const own = known.get(name);
  if (own !== undefined) return own;
  const reference = readCodeReference(name);
  if (reference?.file == null) throw refused(`nothing is called ${JSON.stringify(name)}`);
  let module: Readonly<Record<string, unknown>>;
  try {
    module = (await import(pathToFileURL(reference.file).href)) as typeof module;
  } catch (error) {
    throw refused(`${reference.file} cannot be loaded: ${messageOf(error)}`, error);
  }
  const found = module[reference.name];
  if (typeof found !== 'function') throw refused(`${name} is no function`);
  return found as BranchPicker;
}

function refused(message: string, cause?: unknown): RolloutError {
  return new RolloutError('CONFIG_INVALID', message, {
    ...{ phase: 'config', field: 'rollouts.picker' },
    remedy: `Name one of ${[...known.keys()].join(', ')}, or a function as path/to/file.ts:name.`,
    ...(cause !== undefined && { cause }),
  });
}
