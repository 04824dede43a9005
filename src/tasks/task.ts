/** A task folder as the rest of Slipway sees it: parsed, coerced and checked (spec: Harbor task format). Made by `load-task.ts`. */
import type { NetworkPolicy } from '../wire/network-policy.ts';

/** A string that may be a whole-value template `${NAME}` or `${NAME:-default}`; resolved by `environment-templates.ts` at trial time. */
export type TemplateMap = Readonly<Record<string, string>>;

export type User = string | number;

export interface Healthcheck {
  readonly command: string;
  readonly intervalMs: number;
  readonly timeoutMs: number;
  readonly startPeriodMs: number;
  readonly startIntervalMs: number;
  readonly retries: number;
}

export interface McpServer {
  readonly name: string;
  readonly transport: 'stdio' | 'sse' | 'streamable-http';
  readonly url: string | null;
  readonly command: string | null;
  readonly args: readonly string[];
}

export interface TpuRequest {
  readonly type: string;
  readonly topology: string;
  readonly chips: number;
}

/** `[environment]`, and the environment of a separate verifier. */
export interface TaskEnvironment {
  readonly network: NetworkPolicy;
  readonly buildTimeoutMs: number;
  readonly dockerImage: string | null;
  readonly os: 'linux' | 'windows';
  readonly cpus: number | null;
  readonly memoryMb: number | null;
  readonly storageMb: number | null;
  readonly gpus: number;
  readonly gpuTypes: readonly string[] | null;
  readonly tpu: TpuRequest | null;
  readonly mcpServers: readonly McpServer[];
  readonly env: TemplateMap;
  readonly skillsDir: string | null;
  readonly healthcheck: Healthcheck | null;
  readonly workdir: string | null;
}

export interface Artifact {
  readonly source: string;
  readonly destination: string | null;
  readonly exclude: readonly string[];
  /** null = the sandbox itself (`main`). */
  readonly service: string | null;
}

export interface CollectHook {
  readonly command: string;
  readonly service: string | null;
  readonly timeoutMs: number;
  readonly user: User | null;
}

export interface AgentSection {
  /** null = unlimited (task) or "as the task says" (step). */
  readonly timeoutMs: number | null;
  readonly user: User | null;
  /** Phase override; null = the environment's policy. */
  readonly network: NetworkPolicy | null;
}

export interface VerifierSection {
  readonly timeoutMs: number;
  readonly env: TemplateMap;
  readonly user: User | null;
  readonly network: NetworkPolicy | null;
  /** Resolved by §1.8: explicit, else separate when an environment table exists, else inherited, else shared. */
  readonly mode: 'shared' | 'separate';
  /** For separate mode: the step's table, else the task's, else an independent copy of `[environment]`. null in shared mode. */
  readonly environment: TaskEnvironment | null;
  /** The verifier environment is the inherited copy of `[environment]` (run-time extra hosts merge into it). */
  readonly isEnvironmentInherited: boolean;
  readonly collect: readonly CollectHook[];
}

export interface TaskStep {
  readonly name: string;
  readonly instruction: string;
  readonly agent: AgentSection;
  readonly verifier: VerifierSection;
  /** A number gates the channel `reward`; a map gates each channel; null = no gate. */
  readonly minReward: number | Readonly<Record<string, number>> | null;
  readonly healthcheck: Healthcheck | null;
  readonly artifacts: readonly Artifact[];
}

export interface TaskPackage {
  readonly name: string;
  readonly version: string | null;
  readonly description: string;
  readonly authors: readonly { readonly name: string; readonly email: string | null }[];
  readonly keywords: readonly string[];
}

export interface Task {
  /** Absolute folder. */
  readonly dir: string;
  /** `[task].name`, else the folder's name. */
  readonly name: string;
  /** The part of `name` behind the last `/`. */
  readonly shortName: string;
  readonly package: TaskPackage | null;
  readonly metadata: Readonly<Record<string, unknown>>;
  readonly source: string | null;
  readonly environment: TaskEnvironment;
  readonly agent: AgentSection;
  readonly verifier: VerifierSection;
  /** Given to the oracle only. */
  readonly solutionEnv: TemplateMap;
  readonly artifacts: readonly Artifact[];
  /** Canary stripped, extra instructions appended. Empty for multi-step tasks. */
  readonly instruction: string;
  /** Empty for single-step tasks. */
  readonly steps: readonly TaskStep[];
  /** How step rewards make the trial's; null acts as mean. */
  readonly multiStepRewardStrategy: 'mean' | 'final' | null;
  /** Deprecated or doubtful things that were accepted, each naming its field. */
  readonly warnings: readonly string[];
}
