/**
 * What is known of one command line agent: where its program comes from, how it is told its task and its model, and what its own log says. One such
 * description per agent; `installed-agent.ts` carries it out.
 */
import type { z } from 'zod';
import type { NewStep } from '../../trajectory/trajectory-log.ts';
import type { AtifAgent } from '../../wire/atif/atif.ts';
import type { McpServerEntry } from '../../wire/harbor/run-config.ts';
import type { AgentProgram } from '../agent.ts';

export type CliDialect = 'OpenAI Responses' | 'Anthropic Messages' | 'OpenAI Chat Completions';

/** Options of every agent of this kind are checked by the base and are not among these. */
export type CliOptions = Readonly<Record<string, unknown>>;

export interface CliTask {
  /** As the endpoint knows it: without the provider's prefix. */
  readonly modelName: string;
  /** The gateway from inside the sandbox, with `/v1`. */
  readonly baseUrl: string;
  /** Of this trial alone. */
  readonly apiKey: string;
  readonly instruction: string;
  readonly options: CliOptions;
  readonly mcpServers: readonly McpServerEntry[];
  readonly skillsDir: string | null;
  /** Folder in the sandbox that is there, the agent's own and empty; its log is not kept. */
  readonly homeDir: string;
  /** The program in the sandbox, as a shell calls it. */
  readonly program: string;
}

export interface CliCommand {
  /** A line of a shell. Its standard output and error go to `<name>.txt` of the logs. */
  readonly command: string;
  /** Over the agent's own variables; an empty one unsets what the image or the user may have set. */
  readonly env: Readonly<Record<string, string>>;
  /** Written before, by path in the sandbox. */
  readonly files: Readonly<Record<string, string>>;
  /** Its standard input; absent = empty. */
  readonly stdin?: string;
}

/** What a log tells of a run, as far as it came. */
export interface CliRecord {
  readonly sessionId: string;
  readonly agent: Pick<AtifAgent, 'extra'> & { readonly version: string | null };
  readonly steps: readonly NewStep[];
  readonly tokens: CliTokens;
}

export interface CliTokens {
  /** Cached ones included. */
  readonly prompt: number;
  readonly completion: number;
  readonly cached: number;
}

export interface Cli {
  readonly name: string;
  readonly version: string;
  readonly dialect: CliDialect;
  /** The program first; others, such as an interpreter, after it. */
  programs(version: string): readonly AgentProgram[];
  /** Path in the folder of the first program; null = not for this processor. */
  readonly programPath: string | null;
  /** Of what executes it, in the folder of the last program; absent = it executes itself. */
  readonly interpreterPath?: string;
  /** A line of a shell that prints the version; absent = the program with `--version`. */
  readonly versionCommand?: string;
  /** Of the version that is printed; its first group. */
  readonly versionPattern: RegExp;
  /** Keys of `agent.kwargs` beside those of all. */
  readonly options: z.ZodRawShape;
  /** Variables that would name another model, key or account: nobody may set them for the agent, and the image's are unset. */
  readonly ownedVariables: readonly string[];
  /** Why this machine's variables forbid it; null = they do not. */
  refusal?(hostVariables: Readonly<Record<string, string | undefined>>): string | null;
  command(task: CliTask): CliCommand;
  /** A failure that the last output tells and the exit status does not; null = none. */
  problemIn?(output: string): string | null;
  /** `dir`: the agent's logs on this machine, which anybody in the sandbox may have written. null = no log of a run. */
  read(dir: string): Promise<CliRecord | null>;
}
