/** `slipway preflight`: the checks before a server is started or a job is submitted. */
import { resolve } from 'node:path';
import type { Command } from 'commander';
import { checkNames, preflight } from '../../app/preflight.ts';
import type { CommandScope } from '../command-scope.ts';
import { exitCodes } from '../exit-codes.ts';
import { plainText } from '../plain-text.ts';
import { reportText, resultText } from '../preflight-text.ts';
import { addServeOptions, serveFlags } from '../serve-options.ts';

interface PreflightFlags {
  readonly task?: readonly string[];
  readonly dataset?: string;
  readonly modelUrl?: string;
  readonly modelKeyFile?: string;
  readonly callbackUrl?: readonly string[];
  readonly only?: readonly string[];
  /** `--no-grader`. */
  readonly grader: boolean;
  readonly json?: boolean;
}

const collect = (value: string, previous: readonly string[] | undefined): readonly string[] => [
  ...(previous ?? []),
  value,
];
const collectNames = (value: string, previous?: readonly string[]): readonly string[] => [
  ...(previous ?? []),
  ...value.split(',').map((name) => name.trim()),
];

export function addPreflightCommand(
  parent: Command,
  run: (action: (scope: CommandScope) => Promise<number>) => Promise<void>,
): void {
  addServeOptions(
    parent
      .command('preflight')
      .description('check what a server or a job needs, before it is started')
      .option(
        '--task <REF>',
        'a task, as rows name it: folder, org/name@ref, or metadata as JSON',
        collect,
      )
      .option('--dataset <FILE>', 'rows (JSON lines or a JSON list) whose metadata name tasks')
      .option('--model-url <URL>', 'what /chat/completions is appended to')
      .option('--model-key-file <FILE>', 'file that holds its key; else OPENAI_API_KEY')
      .option('--callback-url <URL>', 'where results shall go', collect)
      .option('--no-grader', 'a workflow without a grader is meant')
      .option('--only <NAME,...>', 'only these checks, and what they need', collectNames)
      .option('--json', 'print a JSON document'),
  ).action((flags: PreflightFlags, command: Command) =>
    run(async (scope) => {
      const { terminal, signal } = scope;
      const ports = await scope.ports();
      const { cwd } = ports.machine;
      const isJson = flags.json === true;
      const absolute = (file: string | undefined): string | null =>
        file === undefined ? null : resolve(cwd, file);
      const clear = terminal.isInteractive ? '\r\u001b[2K' : '';
      const report = await preflight(
        {
          serve: serveFlags(command),
          tasks: flags.task ?? [],
          datasetFile: absolute(flags.dataset),
          modelUrl: flags.modelUrl ?? null,
          modelKeyFile: absolute(flags.modelKeyFile),
          callbackUrls: flags.callbackUrl ?? [],
          needsNoGrader: !flags.grader,
          only: flags.only === undefined ? null : checkNames(flags.only),
          observer: {
            began(name, subject) {
              if (!terminal.isInteractive) return;
              const text = plainText(`checking ${name} ${subject ?? ''}`);
              terminal.err(`${clear}${text.slice(0, terminal.columns - 1)}`);
            },
            ended(result) {
              const text = resultText(result);
              if (isJson) terminal.err(`${clear}${text}\n`);
              else {
                terminal.err(clear);
                terminal.out(text);
              }
            },
          },
        },
        { ports, signal },
      );
      terminal.err(clear);
      terminal.out(isJson ? JSON.stringify(report, null, 2) : reportText(report));
      return report.ok ? exitCodes.ok : exitCodes.failed;
    }),
  );
}
