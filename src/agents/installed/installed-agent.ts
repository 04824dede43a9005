/**
 * A command line agent in the sandbox. Its program is a folder of this machine that the sandbox sees; it reaches nothing but a gateway, by an address and a
 * key of this trial alone, whatever the network policy is. When it has ended its own log becomes the trajectory.
 */
import path from 'node:path';
import { randomUUID } from 'node:crypto';
import { RolloutError } from '../../core/errors.ts';
import { seenFromInside } from '../../environments/host-address.ts';
import type { HostEndpoint } from '../../environments/environment.ts';
import { openTrajectory } from '../../trajectory/file-trajectory-log.ts';
import { withTokenIds } from '../../trajectory/token-ids.ts';
import { emptyAgentResult } from '../../wire/harbor/trial-result.ts';
import type { ModelRoute } from '../../wire/rollout/model-route.ts';
import {
  agentLogsDir,
  type Agent,
  type AgentCapabilities,
  type AgentEnvironment,
  type AgentOptions,
  type AgentRun,
  type AgentSite,
  type OpenRoute,
} from '../agent.ts';
import { findEndpoint, hostOnlyVariables, type Endpoint } from '../shared/endpoint.ts';
import { cliFailure } from './cli-failure.ts';
import { compileCli, type CompiledCli } from './cli-options.ts';
import type { Cli, CliRecord, CliTask } from './cli.ts';
import { homesRoot, programAt } from './places.ts';

const probeMs = 60_000;
/** Of its output, for telling why it failed. */
const tailBytes = 128 * 1024;

export class InstalledAgent implements Agent {
  readonly capabilities: AgentCapabilities = {
    resume: false,
    loadTrajectory: false,
    windows: false,
  };
  readonly hostFiles = ['trajectory.json', 'trajectory*.ndjson'];
  readonly hostOnlyVariables: readonly string[];
  readonly #cli: Cli;
  readonly #given: AgentOptions;
  readonly #compiled: CompiledCli;
  readonly #endpoint: Endpoint | null;
  #route: ModelRoute | null = null;
  #opened: OpenRoute | null = null;
  #version: string | null = null;

  /** Throws CONFIG_INVALID or MODEL_UNSPECIFIED. */
  constructor(cli: Cli, given: AgentOptions) {
    this.#cli = cli;
    this.#given = given;
    this.hostOnlyVariables = [...hostOnlyVariables, ...cli.ownedVariables];
    this.#compiled = compileCli(cli, given);
    const { apiBase } = this.#compiled;
    this.#endpoint =
      given.isInstallOnly === true ? null : findEndpoint(given, { apiBase, apiKey: null });
  }

  get name(): string {
    return this.#cli.name;
  }

  get version(): string | null {
    return this.#version;
  }

  async prepareSite(signal: AbortSignal): Promise<AgentSite> {
    const { programs, openRoute } = this.#given;
    if (programs === undefined) throw new TypeError('no programs are at hand');
    if (this.#cli.programPath === null) throw wrongProcessor(this.name);
    const layers = [];
    for (const program of this.#cli.programs(this.#compiled.version))
      layers.push({
        hostDir: await programs.folderOf(program, signal),
        at: programAt(program.name),
      });
    if (this.#endpoint === null) return { layers, hostEndpoint: null, secrets: [] };
    if (openRoute === undefined) {
      const { baseUrl, apiKey } = this.#endpoint;
      this.#route = { baseUrl, apiKey: apiKey ?? '' };
      return { layers, hostEndpoint: null, secrets: [] };
    }
    this.#opened = await openRoute({ ...this.#endpoint, ...this.#compiled.upstream });
    this.#route = this.#opened;
    const { baseUrl, apiKey } = this.#opened;
    return { layers, hostEndpoint: endpointOf(baseUrl), secrets: [apiKey] };
  }

  async setup(environment: AgentEnvironment, signal: AbortSignal): Promise<void> {
    const { versionCommand = `${this.#program} --version` } = this.#cli;
    const { exitCode, stdout, stderr } = await environment.exec(
      { command: versionCommand, timeoutMs: probeMs },
      signal,
    );
    const version = this.#cli.versionPattern.exec(stdout)?.[1] ?? null;
    if (exitCode !== 0 || version === null)
      throw new RolloutError(
        'AGENT_SETUP_FAILED',
        `the program of ${this.name} does not run in the sandbox: it ended with ${exitCode}`,
        {
          phase: 'agent-setup',
          remedy: 'Use an image with the GNU C library (Debian, Ubuntu and most others).',
          detail: `${stdout}\n${stderr}`.trim().slice(-2000),
        },
      );
    this.#version = version;
    const made = await environment.exec(
      { command: `mkdir -p ${homesRoot} && chmod 1777 ${homesRoot}`, user: 'root', cwd: '/' },
      signal,
    );
    if (made.exitCode !== 0)
      throw new RolloutError('AGENT_SETUP_FAILED', `${homesRoot} cannot be made in the sandbox`, {
        phase: 'agent-setup',
        detail: made.stderr,
      });
  }

  async run(run: AgentRun, signal: AbortSignal): Promise<void> {
    const log = `${agentLogsDir}/${this.name}.txt`;
    const { command, env, files, stdin = '' } = this.#cli.command(this.#task(run));
    const blank = Object.fromEntries(this.#cli.ownedVariables.map((name) => [name, '']));
    const environment = run.environment.withEnv({ ...blank, ...env });
    for (const [file, text] of Object.entries(files))
      await this.#write(environment, { file, text }, signal);
    const { exitCode } = await environment.exec(
      { command: `{ ${command}\n} > ${log} 2>&1`, stdin: Buffer.from(stdin) },
      signal,
    );
    if (exitCode === 0 && this.#cli.problemIn === undefined) return;
    const { stdout } = await environment.exec({ command: `tail -c ${tailBytes} ${log}` }, signal);
    const problem = exitCode === 0 ? (this.#cli.problemIn?.(stdout) ?? null) : stdout;
    if (problem !== null) throw cliFailure({ name: this.name, exitCode }, problem);
  }

  /** A log that is broken or was never begun is no failure of the run: the trial warns of it. */
  async readLogs(record: AgentRun['record']): Promise<void> {
    const read = await this.#cli.read(this.#given.logsDir);
    if (read === null || read.steps.length === 0)
      throw new Error(`${this.name} left no log of its run`);
    await this.#writeTrajectory(read);
    const { prompt, completion, cached } = read.tokens;
    record({
      ...emptyAgentResult,
      n_input_tokens: prompt,
      n_cache_tokens: cached,
      n_output_tokens: completion,
    });
  }

  async close(): Promise<void> {
    await this.#opened?.close();
  }

  get #program(): string {
    const { programPath, interpreterPath } = this.#cli;
    const programs = this.#cli.programs(this.#compiled.version);
    const path = `${programAt(programs[0]?.name ?? '')}/${programPath ?? ''}`;
    if (interpreterPath === undefined) return path;
    return `${programAt(programs.at(-1)?.name ?? '')}/${interpreterPath} ${path}`;
  }

  #task({ environment, instruction }: AgentRun): CliTask {
    if (this.#route === null) throw new TypeError('the site was not prepared');
    const { baseUrl, apiKey } = this.#route;
    const insideUrl = environment.hostEndpointUrl;
    const { options, modelName } = this.#compiled;
    const { mcpServers, skillsDir } = this.#given;
    return {
      ...{ modelName, options, apiKey, instruction, mcpServers, skillsDir },
      baseUrl:
        insideUrl === null
          ? baseUrl
          : seenFromInside(baseUrl, { endpoint: endpointOf(baseUrl), insideUrl }),
      homeDir: `${homesRoot}/${randomUUID()}`,
      program: this.#program,
    };
  }

  async #write(
    environment: AgentEnvironment,
    { file, text }: { readonly file: string; readonly text: string },
    signal: AbortSignal,
  ): Promise<void> {
    const { exitCode, stderr } = await environment.exec(
      {
        command: `umask 077 && mkdir -p '${path.posix.dirname(file)}' && cat > '${file}'`,
        stdin: Buffer.from(text),
        cwd: '/',
      },
      signal,
    );
    if (exitCode !== 0)
      throw new RolloutError('AGENT_FAILED', `${file} cannot be written in the sandbox`, {
        phase: 'agent',
        detail: stderr,
      });
  }

  async #writeTrajectory({ sessionId, agent, steps: told, tokens }: CliRecord): Promise<void> {
    const { logsDir, secrets, modelName } = this.#given;
    const { steps, callOf } = withTokenIds(told, (await this.#opened?.calls()) ?? []);
    const key = this.#route?.apiKey ?? '';
    const log = await openTrajectory({
      file: path.join(logsDir, 'trajectory.json'),
      secrets: key === '' ? secrets : [...secrets, key],
      head: {
        sessionId,
        trajectoryId: null,
        agent: {
          name: this.name,
          version: agent.version ?? this.#compiled.version,
          model_name: modelName,
          ...(agent.extra != null && { extra: agent.extra }),
        },
        notes: null,
        extra: null,
      },
    });
    try {
      for (const [at, step] of steps.entries())
        await log.append(step, { sampledText: callOf.get(at)?.sampledText ?? '' });
    } finally {
      await log.close({
        finalMetrics: {
          total_prompt_tokens: tokens.prompt,
          total_completion_tokens: tokens.completion,
          total_cached_tokens: tokens.cached,
          total_steps: log.stepCount,
        },
      });
    }
  }
}

function endpointOf(baseUrl: string): HostEndpoint {
  const { hostname, port, protocol } = new URL(baseUrl);
  const usual = protocol === 'https:' ? 443 : 80;
  return {
    host: hostname.replace(/^\[(.*)\]$/, '$1'),
    port: port === '' ? usual : Number(port),
  };
}

function wrongProcessor(name: string): RolloutError {
  return new RolloutError(
    'AGENT_SETUP_FAILED',
    `${name} has no program for this machine (${process.platform} ${process.arch})`,
    { phase: 'agent-setup', remedy: 'Run it on Linux with an x64 or arm64 processor.' },
  );
}
