/** `slipway task check` and `slipway task init`. */
import { resolve } from 'node:path';
import type { Command } from 'commander';
import { checkTask, initTask, taskFolders, type Finding } from '../../app/task-folders.ts';
import { exitCodes } from '../exit-codes.ts';
import type { CommandScope } from '../command-scope.ts';

type Run = (action: (scope: CommandScope) => Promise<number>) => Promise<void>;

export function addTaskCommands(parent: Command, run: Run): void {
  parent
    .command('check')
    .description('say everything that is wrong or doubtful about task folders')
    .argument('<DIR...>', 'task folders, or folders of them')
    .option('--json', 'print a JSON document')
    .action((dirs: string[], flags: { readonly json?: boolean }) =>
      run((scope) => check(scope, dirs, flags.json === true)),
    );
  parent
    .command('init')
    .description('write a small complete task')
    .argument('<NAME>', 'org/name, or a plain name')
    .option('-o, --output <DIR>', 'task folder (default: the last part of the name)')
    .action((name: string, flags: { readonly output?: string }) =>
      run(async (scope) => {
        const dir = resolve(flags.output ?? name.split('/').at(-1) ?? name);
        const files = await initTask({ dir, name, signal: scope.signal });
        scope.terminal.out(files.map((file) => `${dir}/${file}`).join('\n'));
        return exitCodes.ok;
      }),
    );
}

async function check(
  scope: CommandScope,
  dirs: readonly string[],
  isJson: boolean,
): Promise<number> {
  const checked: { readonly dir: string; readonly findings: readonly Finding[] }[] = [];
  for (const dir of await taskFolders(dirs, scope.signal))
    checked.push({ dir, findings: await checkTask(dir, scope.signal) });
  if (isJson) scope.terminal.out(JSON.stringify({ schema_version: 1, tasks: checked }, null, 2));
  else for (const { dir, findings } of checked) scope.terminal.out(findingsText(dir, findings));
  const hasErrors = checked.some(({ findings }) =>
    findings.some(({ severity }) => severity === 'error'),
  );
  return hasErrors ? exitCodes.failed : exitCodes.ok;
}

function findingsText(dir: string, findings: readonly Finding[]): string {
  if (findings.length === 0) return `${dir}: ok`;
  const lines = findings.map(
    ({ severity, code, field, message, remedy }) =>
      `  ${severity} ${code} [${field}]: ${message} — ${remedy}`,
  );
  return [dir, ...lines].join('\n');
}
