/** The public list: what programs may import from `slipway`. Everything else may change at any time. */

// Tasks
export { loadTask, type LoadTaskOptions } from './tasks/load-task.ts';
export { checkTask, type Finding } from './tasks/check-task.ts';
export type { Task, TaskStep } from './tasks/task.ts';

// Environments
export type {
  ControlChannel,
  DestroyReceipt,
  Environment,
  EnvironmentCapabilities,
  EnvironmentProvider,
  EnvironmentSpec,
  ExecRequest,
  ExecResult,
  StartReport,
} from './environments/environment.ts';
export type { NetworkPolicy } from './wire/network-policy.ts';

// Agents
export type {
  Agent,
  AgentEnvironment,
  AgentFactory,
  AgentOptions,
  AgentRun,
} from './agents/agent.ts';

// Jobs
export { composeApp } from './app/compose.ts';
export type { AppPorts } from './app/ports.ts';
export { runJob, type JobEvent, type JobOutcome, type RunJobOptions } from './app/run-job.ts';
export { cleanUp, type CleanUpReport } from './app/clean-up.ts';
export { compareJobs, type JobComparison } from './app/compare-jobs.ts';
export { jobConfigSchema, type JobConfig } from './wire/harbor/job-config.ts';
export type { JobResult } from './wire/harbor/job-result.ts';
export type { TrialConfig } from './wire/harbor/trial-config.ts';
export type { TrialResult } from './wire/harbor/trial-result.ts';

// The rollout server
export {
  readServeConfig,
  type ServeConfig,
  type ServeFlags,
} from './config/serve/read-serve-config.ts';
export { startServer, type RunningServer, type StartServerOptions } from './app/serve.ts';

// Controllers
export { CallbackListener, type CallbackListenerOptions } from './callbacks/callback-listener.ts';
export {
  CallbackRendezvous,
  type AckDocument,
  type CallbackDocument,
  type RendezvousOptions,
  type RolloutEnd,
} from './callbacks/callback-rendezvous.ts';
export {
  RolloutController,
  type ControllerRequest,
  type ControllerResult,
  type RolloutControllerOptions,
} from './callbacks/rollout-controller.ts';
export { SubmissionRefused } from './callbacks/rollout-submitter.ts';

// Outcomes and errors
export type { Outcome, Verdict } from './wire/outcome.ts';
export { isRolloutError, RolloutError, type ErrorCode, type Phase } from './core/errors.ts';
export { errorRegistry } from './core/error-registry.ts';

// Workflows and graders of the backend `local`
export type {
  AgentWorkflow,
  Grader,
  GraderContext,
  GraderSample,
  WorkflowAnswer,
  WorkflowContext,
  WorkflowModel,
  WorkflowOutput,
} from './backends/local/user-code.ts';
