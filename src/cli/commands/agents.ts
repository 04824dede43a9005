/** `slipway agents ls` and `slipway agents check`. */
import type { Command } from 'commander';
import {
  checkAgent,
  describeAgents,
  type AgentCheck,
  type AgentDescription,
} from '../../app/check-agent.ts';
import type { CommandScope } from '../command-scope.ts';
import { exitCodes } from '../exit-codes.ts';
import { counted, formatDuration, renderTable } from '../table.ts';

type Run = (action: (scope: CommandScope) => Promise<number>) => Promise<void>;

interface CheckFlags {
  readonly env: string;
  readonly image: string;
  readonly json?: boolean;
}

export function addAgentsCommands(parent: Command, run: Run): void {
  parent
    .command('ls')
    .alias('list')
    .description('list the agents, and what each needs')
    .option('--json', 'print a JSON document')
    .action((flags: { readonly json?: boolean }) =>
      run(async ({ terminal }) => {
        const agents = await describeAgents();
        terminal.out(
          flags.json === true
            ? JSON.stringify({ schema_version: 1, agents }, null, 2)
            : renderTable(['agent', 'version', 'speaks', 'needs'], agents.map(rowOf)),
        );
        return exitCodes.ok;
      }),
    );
  parent
    .command('check')
    .description('install an agent and let it solve a small task on a scripted model')
    .argument('<NAME>', 'an agent whose program is brought into the sandbox')
    .option('-e, --env <TYPE>', 'environment of the sandbox', 'local')
    .option('--image <REF>', 'image of the sandbox', 'debian:bookworm-slim')
    .option('--json', 'print a JSON document')
    .action((name: string, { env, image, json }: CheckFlags) =>
      run(async (scope) => {
        const { terminal, signal } = scope;
        const note = (text: string): void => terminal.err(text);
        const options = { name, environment: env, image, note, signal };
        const checked = await checkAgent(options, await scope.ports());
        terminal.out(
          json === true ? JSON.stringify({ schema_version: 1, ...checked }) : textOf(checked),
        );
        return checked.problems.length === 0 ? exitCodes.ok : exitCodes.failed;
      }),
    );
}

function rowOf({ name, version, dialect, packages, refusal }: AgentDescription) {
  const needs = refusal === null ? packages.join(', ') : `refused: ${refusal}`;
  return [name, version, dialect, needs === '' ? null : needs];
}

function textOf({ agent, problems, modelCalls, durationMs }: AgentCheck): string {
  if (problems.length > 0)
    return [`${agent}: failed`, ...problems.map((problem) => `  ${problem}`)].join('\n');
  return `${agent}: ok (${counted(modelCalls, 'model call')}, ${formatDuration(durationMs)})`;
}
