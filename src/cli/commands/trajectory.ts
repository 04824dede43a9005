/** `slipway trajectory validate` and `show`. */
import { InvalidArgumentError, type Command } from 'commander';
import { checkTrajectory, stepView, trajectoryParts } from '../../app/trajectories.ts';
import { messageOf } from '../../core/errors.ts';
import { atifText } from '../../wire/atif/atif-text.ts';
import type { CommandScope } from '../command-scope.ts';
import { exitCodes } from '../exit-codes.ts';
import { TrajectoryText } from '../trajectory-text.ts';

type Run = (action: (scope: CommandScope) => Promise<number>) => Promise<void>;

/** Both ends belong to it. */
interface StepRange {
  readonly first: number;
  readonly last: number;
}

const everyStep: StepRange = { first: 1, last: Infinity };

export function addTrajectoryCommands(parent: Command, run: Run): void {
  parent
    .command('validate')
    .description('say everything that is wrong with ATIF trajectories')
    .argument('<FILE...>', 'trajectory documents')
    .option('--no-validate-images', 'do not look for the image files that they name')
    .option('--json', 'print a JSON document')
    .action(
      (files: string[], flags: { readonly validateImages: boolean; readonly json?: boolean }) =>
        run((scope) =>
          validate(scope, files, {
            checksImages: flags.validateImages,
            isJson: flags.json === true,
          }),
        ),
    );
  parent
    .command('show')
    .description('show an ATIF trajectory, or the steps that a killed run left')
    .argument('<FILE>', 'trajectory.json or trajectory.steps.ndjson')
    .option('--steps <A..B>', 'only these steps: 3, 3..5, 3.. or ..5', parseRange)
    .option('--json', 'print the document, with these steps only')
    .action((file: string, flags: { readonly steps?: StepRange; readonly json?: boolean }) =>
      run((scope) =>
        flags.json === true
          ? showJson(scope, file, flags.steps ?? everyStep)
          : showText(scope, file, flags.steps ?? everyStep),
      ),
    );
}

function parseRange(text: string): StepRange {
  const found = /^(\d+)?(\.\.)?(\d+)?$/.exec(text);
  const [, from, dots, to] = found ?? [];
  if (found === null || (from ?? to) === undefined)
    throw new InvalidArgumentError('A range is 3, 3..5, 3.. or ..5.');
  const first = from === undefined ? 1 : Number(from);
  const last = dots === undefined ? first : to === undefined ? Infinity : Number(to);
  return { first, last };
}

/** Prints what Harbor's validator prints, file by file, and exits as it does. */
async function validate(
  { terminal, signal }: CommandScope,
  files: readonly string[],
  options: { readonly checksImages: boolean; readonly isJson: boolean },
): Promise<number> {
  const checked: { file: string; valid: boolean; errors: readonly string[] }[] = [];
  for (const file of files) {
    signal.throwIfAborted();
    const { complaint, errors } = await errorsOf(file, options);
    checked.push({ file, valid: errors.length === 0, errors });
    if (options.isJson) continue;
    if (errors.length === 0) terminal.out(`✓ Trajectory is valid: ${file}`);
    else if (complaint !== null) terminal.err(`${complaint}\n`);
    else
      terminal.err(
        [
          `✗ Trajectory validation failed: ${file}`,
          '',
          `Found ${errors.length} error(s):`,
          ...errors.map((error) => `  - ${error}`),
          '',
        ].join('\n'),
      );
  }
  if (options.isJson) terminal.out(JSON.stringify({ schema_version: 1, files: checked }, null, 2));
  return checked.every(({ valid }) => valid) ? exitCodes.ok : exitCodes.failed;
}

/** `complaint`: what to print in place of the list, for a file that could not be read. */
async function errorsOf(
  file: string,
  options: { readonly checksImages: boolean },
): Promise<{ readonly complaint: string | null; readonly errors: readonly string[] }> {
  try {
    return { complaint: null, errors: (await checkTrajectory(file, options)).errors };
  } catch (error) {
    const isMissing = (error as NodeJS.ErrnoException).code === 'ENOENT';
    const message = isMissing ? `File not found: ${file}` : messageOf(error);
    const complaint = isMissing ? `Error: ${message}` : `✗ Validation error: ${message}`;
    return { complaint, errors: [message] };
  }
}

async function showText(scope: CommandScope, file: string, range: StepRange): Promise<number> {
  const text = new TrajectoryText((line) => {
    scope.terminal.out(line);
  });
  let position = 0;
  for await (const { field, value } of trajectoryParts(file, scope.signal)) {
    if (field !== null) text.field(field, value);
    else text.step(stepView(value), isIn(range, (position += 1)));
  }
  text.end();
  return exitCodes.ok;
}

/** The document, written as it is read. */
async function showJson(scope: CommandScope, file: string, range: StepRange): Promise<number> {
  const { terminal, signal } = scope;
  let position = 0;
  let isInSteps = false;
  let separator = '{';
  for await (const { field, value } of trajectoryParts(file, signal)) {
    if (field === null) {
      position += 1;
      if (!isInSteps) terminal.out(`${separator}"steps":[`);
      if (!isInSteps) separator = '';
      isInSteps = true;
      if (!isIn(range, position)) continue;
      terminal.out(`${separator}${atifText(value, null, 'a step')}`);
      separator = ',';
    } else {
      const start = isInSteps ? '],' : separator;
      terminal.out(`${start}${JSON.stringify(field)}:${atifText(value, null, field)}`);
      isInSteps = false;
      separator = ',';
    }
  }
  terminal.out(separator === '{' && !isInSteps ? '{}' : isInSteps ? ']}' : '}');
  return exitCodes.ok;
}

function isIn({ first, last }: StepRange, position: number): boolean {
  return position >= first && position <= last;
}
