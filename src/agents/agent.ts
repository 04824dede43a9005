/**
 * The agent port: what solves a task inside an environment. One folder per agent, named only in `registry.ts`.
 * An agent borrows its environment: it never starts, stops or destroys it. The trial kills whatever the agent leaves running.
 */
import type { Clock } from '../core/clock.ts';
import type { Logger } from '../core/logger.ts';
import type { EngineKind, EngineOpener } from '../engines/engine.ts';
import type {
  ControlChannel,
  Environment,
  EnvironmentLayer,
  ExecRequest,
  HostEndpoint,
  InteractiveProcess,
  ProcessRequest,
} from '../environments/environment.ts';
import type { SampledCall } from '../trajectory/token-ids.ts';
import type { McpServerEntry } from '../wire/harbor/run-config.ts';
import type { AgentResult } from '../wire/harbor/trial-result.ts';
import type { ModelRoute } from '../wire/rollout/model-route.ts';

/** Folder in the sandbox for the agent's logs; it is copied to the host after the run, also after a timeout. */
export const agentLogsDir = '/logs/agent';

/** Process variable in the sandbox: when the agent will be stopped, ISO 8601. Absent without a limit. */
export const deadlineVariable = 'SLIPWAY_DEADLINE';

/** The environment as an agent sees it: commands run as the agent's user with the agent's variables unless a request names its own user. */
export interface AgentEnvironment extends Pick<
  Environment,
  'hostEndpointUrl' | 'uploadFile' | 'uploadDir' | 'downloadFile' | 'downloadDir'
> {
  /** Whom commands run as without a user of their own; null = the image's. */
  readonly user: string | number | null;
  /** What its commands see of the agent's variables, an address of the host as it is from inside. */
  readonly variables: Readonly<Record<string, string>>;
  exec(request: ExecRequest, signal: AbortSignal): ReturnType<Environment['exec']>;
  openControl(options: {
    readonly user?: string | number | null;
    readonly signal: AbortSignal;
  }): Promise<ControlChannel>;
  openProcess(request: ProcessRequest, signal: AbortSignal): Promise<InteractiveProcess>;
  /** The same environment with more variables; they win over those of a request and over outer ones. */
  withEnv(variables: Readonly<Record<string, string>>): AgentEnvironment;
}

/** The task's reference solution; only the oracle looks at it. */
export interface ReferenceSolution {
  /** Absolute path of `solve.sh` for a step (null = single-step task), in the folder that it needs; null = there is none. */
  findScript(step: string | null): Promise<string | null>;
  /** `[solution].env` with its templates resolved; throws VARIABLE_UNSET. */
  env(): Readonly<Record<string, string>>;
}

/** A program that sandboxes see in a folder of this machine: packages of npm or of PyPI, installed once for each version. */
export interface AgentProgram {
  /** Of the folder, here and in the sandbox. */
  readonly name: string;
  /** With exact versions: `@scope/name@1.2.3` of npm, `name==1.2.3` of PyPI. */
  readonly packages: readonly string[];
  /** The packages are of PyPI, and the folder brings a Python for them; absent = they are of npm. */
  readonly python?: PythonNeeds;
}

export interface PythonNeeds {
  /** Versions of Python that they run on, as `3.12`; those named first are preferred. */
  readonly versions: readonly string[];
  /** All packages that are installed, with exact versions; null = what pip chooses for `packages`. */
  readonly lock: readonly string[] | null;
}

export interface AgentPrograms {
  /** The folder, in which `node_modules` or `bin/python3` is; installs what is not there yet. Throws AGENT_SETUP_FAILED with the last words of the installer. */
  folderOf(program: AgentProgram, signal: AbortSignal): Promise<string>;
}

/** A route of a gateway of ours to the model of one trial. */
export interface OpenRoute extends ModelRoute {
  /** The calls that have come to their end; none where they are not captured, or what was captured cannot be read. Never rejects. */
  calls(): Promise<readonly SampledCall[]>;
  /** Ends its calls; its key is dead afterwards. Idempotent, never rejects. */
  close(): Promise<void>;
}

export interface RouteUpstream {
  readonly baseUrl: string;
  readonly apiKey: string | null;
  /** `chat` = nothing is known of it; others are asked for token ids and log-probabilities. */
  readonly engineKind: EngineKind;
  /** Whether its calls are kept. */
  readonly isCaptured: boolean;
}

/** Puts a gateway before a model that speaks chat completions. */
export type RouteOpener = (upstream: RouteUpstream) => Promise<OpenRoute>;

/** What the sandbox of an agent has to be made with. */
export interface AgentSite {
  readonly layers: readonly EnvironmentLayer[];
  /** The one address of the host that the agent reaches from inside; null = that of the trial, if it has one. */
  readonly hostEndpoint: HostEndpoint | null;
  /** Keys that came to be with it: none may reach a file of the trial. */
  readonly secrets: readonly string[];
}

export interface AgentOptions {
  readonly name: string;
  /** As configured, with provider prefix; null = none. */
  readonly modelName: string | null;
  /** The agent's own options; each agent validates them (CONFIG_INVALID). */
  readonly kwargs: Readonly<Record<string, unknown>>;
  readonly mcpServers: readonly McpServerEntry[];
  /** Folder in the sandbox that holds skills; null = none. */
  readonly skillsDir: string | null;
  /** Host folder for the agent's logs. */
  readonly logsDir: string;
  readonly solution: ReferenceSolution;
  /** `agent.env` with its templates resolved: an agent that runs on the host reads its endpoint and key from here first. */
  readonly env: Readonly<Record<string, string>>;
  /** Variables of this process, the second place for an endpoint and a key. */
  readonly hostVariables: Readonly<Record<string, string | undefined>>;
  /** Known secret values: none may reach a document that the agent writes. */
  readonly secrets: readonly string[];
  /** Opens a client for a model; the agent closes what it opened before its run ends. */
  readonly openEngine: EngineOpener;
  /** For agents whose program is brought into the sandbox. */
  readonly programs?: AgentPrograms;
  /** For agents that call their model from inside in another dialect than its own; absent = the address that they are given is that of a gateway. */
  readonly openRoute?: RouteOpener;
  /** It is set up and never run: an address of a model may be missing. */
  readonly isInstallOnly?: boolean;
  readonly clock: Clock;
  readonly logger: Logger;
}

export interface AgentRun {
  readonly instruction: string;
  readonly environment: AgentEnvironment;
  /** null for a single-step task; `index` counts from 0. */
  readonly step: { readonly name: string; readonly index: number } | null;
  /** When `signal` will fire; null = no limit. The sandbox sees it as SLIPWAY_DEADLINE. */
  readonly deadline: Date | null;
  /** Keeps what is known so far; call it as often as it changes. The last call counts, also when the run is cut off. */
  record(result: AgentResult): void;
}

/** What an agent can do beyond a plain run; checked before the trial starts anything. */
export interface AgentCapabilities {
  /** Continues its own conversation in a later step. */
  readonly resume: boolean;
  /** Starts from a given trajectory. */
  readonly loadTrajectory: boolean;
  /** Has no conversation: the trajectory that a task brings means nothing to it, and is not looked at. */
  readonly ignoresTrajectory?: true;
  readonly windows: boolean;
}

export interface Agent {
  readonly name: string;
  /** null = unknown; may become known during `setup`. */
  readonly version: string | null;
  readonly capabilities: AgentCapabilities;
  /** Names in `logsDir` that the agent writes on the host. Files of these names in the sandbox's log folder are never copied over them. */
  readonly hostFiles: readonly string[];
  /** Variables of `agent.env` that only the host side of the agent reads, such as the key of the model: they never enter the sandbox. */
  readonly hostOnlyVariables: readonly string[];
  /**
   * Looks at what the agent needs beside a sandbox, such as the address of its model, and keeps nothing open; absent = nothing to look at. Called
   * once, before anything is started, so that a wrong address costs no sandbox. Throws what the run would throw; a signal ends it with its reason.
   */
  preflight?(signal: AbortSignal): Promise<void>;
  /**
   * Makes ready on this machine what the sandbox has to be made with; absent = nothing. Called once, before the sandbox is made and before
   * `preflight`. Throws AGENT_SETUP_FAILED; a signal ends it with its reason.
   */
  prepareSite?(signal: AbortSignal): Promise<AgentSite>;
  /** Installs what the agent needs. Called once, before the first run. Throws AGENT_SETUP_FAILED; a signal ends it with its reason. */
  setup(environment: AgentEnvironment, signal: AbortSignal): Promise<void>;
  /**
   * Works on one instruction until done. When `signal` fires it stops waiting and rejects with the reason, or with what had kept it from working
   * until then, such as a model that failed: a sample like that is not trained on. Throws AGENT_EXIT_NONZERO
   * when the agent's program failed (verification still runs), any other error ends the trial unverified.
   */
  run(run: AgentRun, signal: AbortSignal): Promise<void>;
  /**
   * Tells what it learns from its logs, which are in `logsDir` now; absent = nothing. Called after each run, also one that failed or was cut off. What it
   * throws is a warning of the trial.
   */
  readLogs?(record: AgentRun['record'], signal: AbortSignal): Promise<void>;
  /** Ends what it keeps on the host; absent = nothing is kept. Called once, at the end of every trial, whatever was called before. Never rejects. */
  close?(): Promise<void>;
}

export type AgentFactory = (options: AgentOptions) => Agent;

/** Finds an agent by name; rejects with AGENT_UNKNOWN, which lists the names. */
export type AgentResolver = (name: string) => Promise<AgentFactory>;
