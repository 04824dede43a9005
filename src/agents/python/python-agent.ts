/**
 * A class of Harbor's that the user names by import path, in a process of its own on the host: one process for the whole trial, since the object keeps what
 * it found out while it was set up. The process is started by the first of `preflight`, `setup` and `run` that comes.
 */
import { readdir } from 'node:fs/promises';
import path from 'node:path';
import { type Phase, RolloutError } from '../../core/errors.ts';
import { LinkedAbort } from '../../core/linked-abort.ts';
import type { PythonInterpreter } from '../../runner/interpreter.ts';
import { RunnerProcess } from '../../runner/runner-process.ts';
import type { AgentResult } from '../../wire/harbor/trial-result.ts';
import {
  harborAgentDetailsSchema,
  harborAgentReportSchema as reportSchema,
  type HarborAgentDetails,
  type HarborAgentOrder,
  type HarborAgentReport,
  type HarborAgentSettings,
} from '../../wire/runner/harbor-agent-messages.ts';
import {
  agentLogsDir,
  type Agent,
  type AgentCapabilities,
  type AgentEnvironment,
  type AgentOptions,
  type AgentRun,
} from '../agent.ts';
import { endOf, failureOf } from './agent-failure.ts';
import { EnvironmentRequests } from './environment-requests.ts';
import { LineLog } from './line-log.ts';
import { interpreterOf } from './interpreter-of.ts';

/** For the agent's code to end after it was told to: less than a trial waits for it. */
const cancelMs = 4_000;

export class PythonAgent implements Agent {
  // What the class says of itself is known only when it was loaded.
  readonly capabilities: AgentCapabilities = {
    resume: false,
    loadTrajectory: false,
    windows: false,
  };
  /** As in Harbor, all variables of the agent go into the sandbox. */
  readonly hostOnlyVariables = [];
  readonly #importPath: string;
  readonly #options: AgentOptions;
  readonly #interpreter: PythonInterpreter;
  #runner: RunnerProcess | null = null;
  #details: HarborAgentDetails | null = null;
  #version: string | null = null;
  #hostFiles: readonly string[] = [];
  #isClosed = false;

  constructor(importPath: string, options: AgentOptions) {
    this.#importPath = importPath;
    this.#options = options;
    this.#interpreter = interpreterOf(options.hostVariables);
  }

  get name(): string {
    return this.#details?.name ?? this.#importPath;
  }

  get version(): string | null {
    return this.#version;
  }

  get hostFiles(): readonly string[] {
    return this.#hostFiles;
  }

  async preflight(signal: AbortSignal): Promise<void> {
    await this.#open('config', signal);
  }

  async setup(environment: AgentEnvironment, signal: AbortSignal): Promise<void> {
    const requests = new EnvironmentRequests(environment, { record: () => undefined, signal });
    const order = { kind: 'setup', ...viewOf(environment) } as const;
    await this.#carryOut(order, { phase: 'agent-setup', requests }, signal);
  }

  async run(run: AgentRun, signal: AbortSignal): Promise<void> {
    const { environment, instruction } = run;
    const record = (result: AgentResult): void => run.record(result);
    const requests = new EnvironmentRequests(environment, { record, signal });
    const order = { kind: 'run', ...viewOf(environment), instruction } as const;
    try {
      await this.#carryOut(order, { phase: 'agent', requests, record }, signal);
    } finally {
      this.#hostFiles = await filesIn(this.#options.logsDir);
    }
  }

  /** Nothing is read when the process is gone: why it went has been said. */
  async readLogs(record: (result: AgentResult) => void, signal: AbortSignal): Promise<void> {
    if (this.#runner?.isGone !== false) return;
    await this.#carryOut(
      { kind: 'read-logs' },
      { phase: 'collect', requests: null, record },
      signal,
    );
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#runner?.terminate();
  }

  async #carryOut(
    order: HarborAgentOrder,
    at: {
      readonly phase: Phase;
      readonly requests: EnvironmentRequests | null;
      readonly record?: AgentRun['record'];
    },
    signal: AbortSignal,
  ): Promise<void> {
    const { phase, requests } = at;
    const runner = await this.#open(phase, signal);
    const report = await this.#report(runner, { order, ...at }, signal);
    if (report.context !== null) at.record?.(report.context);
    this.#version = report.version ?? this.#version;
    signal.throwIfAborted();
    if (report.failure !== null)
      throw failureOf(report.failure, { name: this.name, phase, requests });
    // Nobody told it to stop: the agent's code cancelled itself.
    if (report.outcome === 'cancelled')
      throw new RolloutError('AGENT_FAILED', `agent ${this.name}: it cancelled itself`, { phase });
  }

  async #report(
    runner: RunnerProcess,
    at: {
      readonly order: HarborAgentOrder;
      readonly phase: Phase;
      readonly requests: EnvironmentRequests | null;
    },
    signal: AbortSignal,
  ): Promise<HarborAgentReport> {
    const { order, phase, requests } = at;
    signal.throwIfAborted(); // it fires no more for whoever begins to listen now
    const stopping = stopWhen(signal, runner);
    try {
      const { value, failure } = await runner.carryOut({
        order,
        report: reportSchema,
        ...(requests !== null && {
          answer: (method, params, withdrawn) => requests.answer(method, params, withdrawn),
        }),
      });
      if (value !== null) return value;
      throw new RolloutError(
        'AGENT_FAILED',
        `agent ${this.name}: its result cannot be told: ${failure?.message ?? 'it is no JSON'}`,
        { phase },
      );
    } catch (error) {
      signal.throwIfAborted();
      throw endOf(error, { importPath: this.#importPath, phase });
    } finally {
      stopping[Symbol.dispose]();
    }
  }

  /** The process, ready for orders. */
  async #open(phase: Phase, signal: AbortSignal): Promise<RunnerProcess> {
    signal.throwIfAborted();
    if (this.#isClosed) throw new Error('the agent is closed');
    this.#runner ??= this.#start();
    const runner = this.#runner;
    const stop = (): void => void runner.terminate();
    signal.addEventListener('abort', stop, { once: true });
    try {
      const { details } = await runner.ready;
      this.#details ??= harborAgentDetailsSchema.parse(details);
      this.#version ??= this.#details.version;
      return runner;
    } catch (error) {
      signal.throwIfAborted();
      throw endOf(error, { importPath: this.#importPath, phase });
    } finally {
      signal.removeEventListener('abort', stop);
    }
  }

  #start(): RunnerProcess {
    const { logger, hostVariables } = this.#options;
    const log = new LineLog((line) => logger.log('debug', 'agent', { line }));
    const runner = new RunnerProcess({
      role: 'harbor-agent',
      interpreter: this.#interpreter,
      settings: this.#settings(),
      variables: hostVariables,
      onGone: () => log.end(),
    });
    runner.onPrint = (text) => log.push(text);
    return runner;
  }

  #settings(): HarborAgentSettings {
    const { logsDir, modelName, mcpServers, skillsDir, env, kwargs } = this.#options;
    const trialDir = path.dirname(logsDir);
    return {
      import_path: this.#importPath,
      trial_dir: trialDir,
      logs_dir: logsDir,
      session_id: `${path.basename(trialDir)}__agent`,
      model_name: modelName,
      mcp_servers: mcpServers,
      skills_dir: skillsDir,
      environment_logs_dir: agentLogsDir,
      extra_env: env,
      kwargs,
    };
  }
}

function viewOf({ user, variables: env }: AgentEnvironment) {
  return { user, env };
}

/** Tells the agent to stop, and ends its process when it does not. */
function stopWhen(signal: AbortSignal, runner: RunnerProcess): Disposable {
  let force: LinkedAbort | null = null;
  const stop = (): void => {
    runner.cancel('the agent has to stop');
    force = new LinkedAbort([], { ms: cancelMs, reason: () => undefined });
    force.signal.addEventListener('abort', () => void runner.terminate(), { once: true });
  };
  signal.addEventListener('abort', stop, { once: true });
  return {
    [Symbol.dispose]() {
      signal.removeEventListener('abort', stop);
      force?.[Symbol.dispose]();
    },
  };
}

/** What the host side wrote: files of the sandbox never come over it. */
async function filesIn(dir: string): Promise<readonly string[]> {
  const entries = await readdir(dir, { withFileTypes: true });
  return entries.filter((entry) => entry.isFile()).map(({ name }) => name);
}
