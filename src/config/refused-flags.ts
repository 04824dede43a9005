import type { Problems } from './problems.ts';

const simulatedUser = 'simulated users are not supported';
const hosted = 'there is no hosted platform behind this command';
const pythonClass = 'classes named by import path run only in Harbor';

/** Flags of Harbor that are understood and refused, never ignored: whether they take a value, why, and what to do instead. */
export const refusedFlags: Readonly<
  Record<string, { readonly takesValue: boolean; readonly why: string; readonly remedy: string }>
> = {
  ...refuse(
    [
      '--user-agent',
      '--user-model',
      '--uk',
      '--user-agent-kwarg',
      '--user-persona-path',
      '--user-prompt-template-path',
      '--bridge',
      '--bridge-prompt-path',
      '--bk',
      '--bridge-kwarg',
    ],
    true,
    simulatedUser,
    'Leave the flag out.',
  ),
  ...refuse(['--plugin', '--pk'], true, 'job plugins are not supported', 'Leave the flag out.'),
  ...refuse(
    ['--upload', '--public', '--private', '--launch'],
    false,
    hosted,
    'Leave the flag out; results stay in the job folder.',
  ),
  ...refuse(
    ['--share-org', '--share-user', '--org'],
    true,
    hosted,
    'Leave the flag out; results stay in the job folder.',
  ),
  ...refuse(
    ['--environment-import-path'],
    true,
    pythonClass,
    'Name a built-in environment with --env.',
  ),
  ...refuse(
    ['--verifier-import-path', '--verifier'],
    true,
    pythonClass,
    'Put the check into the task’s tests.',
  ),
};

function refuse(
  names: readonly string[],
  takesValue: boolean,
  why: string,
  remedy: string,
): typeof refusedFlags {
  return Object.fromEntries(names.map((name) => [name, { takesValue, why, remedy }]));
}

/** Adds one problem per refused flag that was given. */
export function refuseFlags(given: Iterable<string>, problems: Problems): void {
  for (const name of given) {
    const refused = refusedFlags[name];
    if (refused !== undefined) problems.add(name, refused.why, refused.remedy);
  }
}
