import { randomUUID } from 'node:crypto';
import path from 'node:path';
import type { Engine } from '../../engines/engine.ts';
import type { AtifAgent } from '../../wire/atif/atif.ts';
import type {
  Agent,
  AgentCapabilities,
  AgentEnvironment,
  AgentOptions,
  AgentRun,
} from '../agent.ts';
import { findEndpoint, hostOnlyVariables, type Endpoint } from '../shared/endpoint.ts';
import { augmentInstruction } from './instruction/augment-instruction.ts';
import { compileOptions, type Terminus2Options } from './options.ts';
import { installTerminal } from './terminal/install-terminal.ts';
import { openTerminal } from './terminal/open-terminal.ts';
import { recordingName } from './terminal/recording.ts';
import type { Terminal } from './terminal/terminal.ts';
import { runWithTerminal } from './run-with-terminal.ts';
import { trajectoryFiles } from './trajectory-recorder.ts';
import { letGoWithinMs } from './within-ms.ts';

/** For letting go of the terminal, and for that after a run was told to stop. */
const closeMs = 10_000;
const stoppedCloseMs = 1_000;
/** Shorter values occur in ordinary text. */
const minSecretLength = 6;

/** Drives a terminal in the sandbox by what a model, asked from the host, says in JSON or XML. */
export class Terminus2Agent implements Agent {
  readonly name = 'terminus-2';
  readonly version = '2.0.0';
  readonly capabilities: AgentCapabilities = {
    resume: false,
    loadTrajectory: false,
    windows: false,
  };
  readonly hostFiles = [...trajectoryFiles, recordingName];
  readonly hostOnlyVariables = hostOnlyVariables;
  readonly #given: AgentOptions;
  readonly #options: Terminus2Options;
  readonly #endpoint: Endpoint;
  readonly #sessionId: string;

  /** Throws CONFIG_INVALID or MODEL_UNSPECIFIED. */
  constructor(given: AgentOptions) {
    this.#given = given;
    this.#options = compileOptions(given);
    const { apiBase, call } = this.#options;
    this.#endpoint =
      given.isInstallOnly === true
        ? { baseUrl: '', apiKey: call.apiKey }
        : findEndpoint(given, { apiBase, apiKey: call.apiKey });
    this.#sessionId = this.#options.sessionId ?? randomUUID();
  }

  async preflight(): Promise<void> {
    const engine = await this.#openEngine();
    await engine.close();
  }

  async setup(environment: AgentEnvironment, signal: AbortSignal): Promise<void> {
    await installTerminal(environment, { signal, logger: this.#given.logger });
  }

  async run(run: AgentRun, signal: AbortSignal): Promise<void> {
    const engine = await this.#openEngine();
    try {
      const terminal = await this.#openTerminal(run.environment, signal);
      try {
        await runWithTerminal(
          {
            ...run,
            ...this.#given,
            instruction: await augmentInstruction(
              run.instruction,
              { ...this.#given, environment: run.environment },
              signal,
            ),
            options: this.#options,
            sessionId: this.#sessionId,
            agent: this.#describe(),
            secrets: this.#secrets,
            engine,
            terminal,
          },
          signal,
        );
      } finally {
        // The trial kills what is left.
        await letGoWithinMs(
          signal.aborted ? stoppedCloseMs : closeMs,
          terminal.close(),
          (problem) =>
            this.#given.logger.log('warn', 'terminus-2: the terminal was not let go of', {
              problem,
            }),
        );
      }
    } finally {
      await (signal.aborted ? engine.destroy(signal.reason as Error) : engine.close());
    }
  }

  #openEngine(): Promise<Engine> {
    const { baseUrl, apiKey } = this.#endpoint;
    const { stallMs } = this.#options.call;
    return this.#given.openEngine({ kind: 'chat', baseUrl, apiKey, stallMs });
  }

  #openTerminal(environment: AgentEnvironment, signal: AbortSignal): Promise<Terminal> {
    const { clock, logger, logsDir, env } = this.#given;
    const { paneWidth, paneHeight, isRecording } = this.#options;
    const hidden = new Set(hostOnlyVariables);
    return openTerminal(
      {
        environment,
        width: paneWidth,
        height: paneHeight,
        env: Object.fromEntries(Object.entries(env).filter(([name]) => !hidden.has(name))),
        recordingFile: isRecording ? path.join(logsDir, recordingName) : null,
        secrets: this.#secrets,
        clock,
        logger,
      },
      signal,
    );
  }

  #describe(): AtifAgent {
    const { modelName, parser, temperature, call } = this.#options;
    return {
      name: this.name,
      version: this.version,
      model_name: modelName,
      extra: {
        parser,
        ...(temperature !== null && { temperature }),
        ...(call.shown !== null && { llm_kwargs: call.shown }),
      },
    };
  }

  get #secrets(): readonly string[] {
    const { apiKey } = this.#endpoint;
    const isLong = apiKey !== null && apiKey.length >= minSecretLength;
    return isLong ? [...this.#given.secrets, apiKey] : this.#given.secrets;
  }
}
