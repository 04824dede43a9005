/** Failures in every phase of a native rollout, and what its diagnostics must say of each. */
import { RolloutError } from '../../../src/core/errors.ts';
import type { DiagnosticPhase } from '../../../src/backends/shared/trial-diagnostics.ts';
import type { ControllerRequest } from '../../../src/callbacks/rollout-controller.ts';
import type { Fault } from '../../fakes/environment/faults.ts';
import type { FolderFiles } from '../../fakes/task-folder.ts';
import { testsSay, toml } from '../outcomes/native-rows.ts';

export interface DiagnosticsRow {
  /** Part of ids, folders and sandbox names. */
  readonly name: string;
  readonly phase: DiagnosticPhase;
  /** null = nothing failed. */
  readonly exception: string | null;
  readonly files?: FolderFiles;
  readonly agentDoes?: string;
  readonly fault?: Omit<Fault, 'when'> & { readonly in?: string };
  readonly request?: Partial<ControllerRequest>;
  /**
   * What the completion has of the object that all other places have: all of it; what was known when the agent had failed and its work was still to be
   * verified; the success that it was by then; nothing, because a cancelled rollout sends no callback.
   */
  readonly completion: 'all' | 'failure before the verdict' | 'success' | 'none';
  /** There is a sample, and its agent left a trajectory. */
  readonly hasTrajectory: boolean;
  /** Who ends it while its agent is at work. */
  readonly endedBy?: 'controller' | 'server';
}

const start = new RolloutError('ENVIRONMENT_START_FAILED', 'planted', { phase: 'environment' });

export const diagnosticsRows: readonly DiagnosticsRow[] = [
  {
    ...{ name: 'setup-task-missing', phase: 'setup', exception: 'FileNotFoundError' },
    request: { metadata: { harbor_task: '/no/such/task' } },
    ...{ completion: 'all', hasTrajectory: false },
  },
  {
    ...{ name: 'setup-task-wrong', phase: 'setup', exception: 'ValidationError' },
    files: toml('cpus = "many"'),
    ...{ completion: 'all', hasTrajectory: false },
  },
  {
    ...{ name: 'trial-setup-no-gpus', phase: 'trial_setup', exception: 'ValueError' },
    files: toml('gpus = 1'),
    ...{ completion: 'all', hasTrajectory: false },
  },
  {
    ...{ name: 'environment-start', phase: 'environment_setup', exception: 'RuntimeError' },
    fault: { at: 'start', does: start },
    ...{ completion: 'all', hasTrajectory: false },
  },
  {
    ...{ name: 'environment-sick', phase: 'environment_setup', exception: 'HealthcheckError' },
    files: toml('[environment.healthcheck]\ncommand = "exit 1"\ninterval_sec = 0.01\nretries = 1'),
    ...{ completion: 'all', hasTrajectory: false },
  },
  {
    ...{ name: 'agent-setup-fails', phase: 'agent_setup', exception: 'RuntimeError' },
    request: { metadata: { harbor_model: 'openai/setup-breaks' } },
    ...{ completion: 'all', hasTrajectory: false },
  },
  {
    ...{ name: 'agent-breaks', phase: 'agent', exception: 'RuntimeError' },
    ...{ agentDoes: 'break', completion: 'all', hasTrajectory: true },
  },
  {
    ...{ name: 'agent-loses-sandbox', phase: 'agent', exception: 'RuntimeError' },
    fault: { at: 'exec', does: 'lose-sandbox', in: 'the long command' },
    ...{ agentDoes: 'work-long', completion: 'all', hasTrajectory: true },
  },
  {
    ...{ name: 'agent-late', phase: 'agent', exception: 'AgentTimeoutError' },
    request: { agent_timeout_sec: 2 },
    ...{ agentDoes: 'sleep', completion: 'failure before the verdict', hasTrajectory: true },
  },
  {
    ...{ name: 'verifier-silent', phase: 'verification', exception: 'RewardFileNotFoundError' },
    files: testsSay('true'),
    ...{ completion: 'success', hasTrajectory: true },
  },
  {
    ...{ name: 'verifier-hangs', phase: 'verification', exception: 'VerifierTimeoutError' },
    files: testsSay('sleep 60'),
    request: { grader_timeout_sec: 0.3 },
    ...{ completion: 'success', hasTrajectory: true },
  },
  {
    ...{ name: 'verifier-loses-sandbox', phase: 'verification', exception: 'RuntimeError' },
    files: testsSay('echo 1 > /logs/verifier/reward.txt'),
    fault: { at: 'exec', does: 'lose-sandbox', in: 'test.sh' },
    ...{ completion: 'success', hasTrajectory: true },
  },
  {
    ...{ name: 'grading-no-channel', phase: 'grading', exception: 'RewardFileNotFoundError' },
    files: testsSay('echo \'{"a": 1, "b": 0}\' > /logs/verifier/reward.json'),
    ...{ completion: 'success', hasTrajectory: true },
  },
  {
    ...{ name: 'well', phase: 'verification', exception: null },
    ...{ completion: 'success', hasTrajectory: true },
  },
  {
    ...{ name: 'well-ungraded', phase: 'verification', exception: null },
    request: { isGraded: false },
    ...{ completion: 'success', hasTrajectory: true },
  },
  {
    ...{ name: 'cancelled-by-controller', phase: 'cancelled', exception: 'CancelledError' },
    ...{ agentDoes: 'sleep', endedBy: 'controller', completion: 'none', hasTrajectory: false },
  },
  {
    ...{ name: 'cancelled-by-shutdown', phase: 'cancelled', exception: 'RuntimeError' },
    ...{ agentDoes: 'sleep', endedBy: 'server', completion: 'all', hasTrajectory: false },
  },
];
