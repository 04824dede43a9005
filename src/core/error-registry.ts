/**
 * The registry of error codes. A code is stable and never reused; `docs/errors.md` lists exactly these codes (a test
 * compares both ways). `harborType` is the exception name that Harbor writes for the same failure into `result.json` and matches
 * in its retry filters.
 */

export interface ErrorRow {
  readonly httpStatus: number;
  /** Who has to act: the author of the request or task, the operator of the machine, or nobody (a passing fault). */
  readonly category:
    'input' | 'task' | 'infrastructure' | 'agent' | 'verifier' | 'cancelled' | 'internal';
  readonly retryable: boolean;
  readonly harborType: string;
  readonly summary: string;
}

const row = (
  httpStatus: number,
  category: ErrorRow['category'],
  retryable: boolean,
  harborType: string,
  summary: string,
): ErrorRow => ({ httpStatus, category, retryable, harborType, summary });

// A table reads best with one row per line.
// prettier-ignore
export const errorRegistry = {
  CONFIG_INVALID: row(400, 'input', false, 'ValueError', 'An option, flag or configuration file is not valid.'),
  TASK_NOT_FOUND: row(404, 'task', false, 'FileNotFoundError', 'The task folder does not exist or holds no task.toml.'),
  TASK_CONFIG_INVALID: row(422, 'task', false, 'ValidationError', 'task.toml breaks a rule of the task format.'),
  TASK_CONFIG_UNREADABLE: row(422, 'task', false, 'TOMLDecodeError', 'task.toml is not TOML or cannot be read.'),
  TASK_FILE_MISSING: row(422, 'task', false, 'FileNotFoundError', 'A file that the task format requires is missing.'),
  TASK_TESTS_MISSING: row(422, 'task', false, 'FileNotFoundError', 'A shared verifier has no test script.'),
  TASK_ENVIRONMENT_UNDEFINED: row(422, 'task', false, 'FileNotFoundError', 'The task names no image, Dockerfile or compose file.'),
  TASK_SOLUTION_MISSING: row(422, 'task', false, 'FileNotFoundError', 'The oracle finds no solution script.'),
  TASK_TRAJECTORY_INVALID: row(422, 'task', false, 'ValidationError', 'The trajectory shipped with a task cannot be used.'),
  VARIABLE_UNSET: row(422, 'input', false, 'ValueError', 'A template names an environment variable that is not set.'),
  REFERENCE_INVALID: row(400, 'input', false, 'ValueError', 'A task, dataset or skill reference cannot be read.'),
  GIT_FAILED: row(502, 'infrastructure', true, 'CalledProcessError', 'git could not fetch a referenced repository.'),
  REGISTRY_NOT_CONFIGURED: row(400, 'input', false, 'ValueError', 'A package or dataset is named but no registry address is set.'),
  REGISTRY_UNAVAILABLE: row(502, 'infrastructure', true, 'RegistryError', 'The registry did not answer, or not in its own format.'),
  PACKAGE_NOT_FOUND: row(404, 'input', false, 'PackageNotFoundError', 'The registry does not know this package version.'),
  PACKAGE_DIGEST_MISMATCH: row(502, 'infrastructure', true, 'RegistryError', 'Downloaded content does not have the promised digest.'),
  DATASET_NOT_FOUND: row(404, 'input', false, 'DatasetNotFoundError', 'The dataset or its version does not exist.'),
  DATASET_EMPTY: row(422, 'input', false, 'EmptyDatasetError', 'The dataset holds no task, or the filters leave none.'),
  DATASET_TASKS_UNAVAILABLE: row(422, 'input', false, 'UnavailableDatasetTasksError', 'Some tasks of the dataset are not accessible.'),
  ARCHIVE_UNSAFE: row(422, 'input', false, 'ReadError', 'An archive would write outside its folder or is larger than allowed.'),
  ENVIRONMENT_UNKNOWN: row(400, 'input', false, 'ValueError', 'No environment of this name is registered.'),
  ENVIRONMENT_UNAVAILABLE: row(503, 'infrastructure', false, 'RuntimeError', 'The sandbox runtime is missing or does not answer.'),
  CAPABILITY_UNSUPPORTED: row(422, 'task', false, 'ValueError', 'The task needs something that this environment does not declare.'),
  ENVIRONMENT_START_FAILED: row(503, 'infrastructure', true, 'RuntimeError', 'The sandbox could not be started.'),
  ENVIRONMENT_START_TIMEOUT: row(504, 'infrastructure', true, 'EnvironmentStartTimeoutError', 'The sandbox was not up within its build timeout.'),
  ENVIRONMENT_LOST: row(503, 'infrastructure', true, 'RuntimeError', 'The sandbox died or was removed during the trial.'),
  ENVIRONMENT_DESTROY_FAILED: row(503, 'infrastructure', true, 'RuntimeError', 'Something of the sandbox could not be removed.'),
  IMAGE_NOT_FOUND: row(422, 'task', false, 'RuntimeError', 'The image is neither here nor in a registry that answers.'),
  IMAGE_BUILD_FAILED: row(422, 'task', false, 'RuntimeError', 'The Dockerfile of the task does not build.'),
  IMAGE_INVALID: row(422, 'task', false, 'RuntimeError', 'An image archive or layer cannot be used.'),
  HEALTHCHECK_FAILED: row(422, 'task', true, 'HealthcheckError', 'The health check of the environment did not pass.'),
  EXEC_FAILED: row(503, 'infrastructure', true, 'RuntimeError', 'A command could not be run in the sandbox.'),
  EXEC_TIMEOUT: row(504, 'task', false, 'RuntimeError', 'A command in the sandbox ran longer than its limit.'),
  TRANSFER_FAILED: row(503, 'infrastructure', true, 'RuntimeError', 'Files could not be copied into or out of the sandbox.'),
  SERVICE_UNSUPPORTED: row(422, 'task', false, 'ServiceOperationsUnsupportedError', 'Side services need an environment with compose.'),
  DISK_FULL: row(507, 'infrastructure', true, 'OSError', 'No space is left on the host or in the sandbox.'),
  AGENT_UNKNOWN: row(400, 'input', false, 'ValueError', 'No agent of this name is registered.'),
  AGENT_SETUP_FAILED: row(500, 'agent', true, 'RuntimeError', 'The agent could not be set up in the sandbox.'),
  AGENT_SETUP_TIMEOUT: row(504, 'agent', true, 'AgentSetupTimeoutError', 'Setting up the agent took longer than its limit.'),
  AGENT_TIMEOUT: row(504, 'agent', false, 'AgentTimeoutError', 'The agent ran longer than its limit; the verifier still ran.'),
  AGENT_EXIT_NONZERO: row(500, 'agent', true, 'NonZeroAgentExitCodeError', 'The agent exited with an error; the verifier still ran.'),
  AGENT_FAILED: row(500, 'agent', true, 'RuntimeError', 'The agent failed.'),
  MODEL_UNSPECIFIED: row(400, 'input', false, 'ValueError', 'The agent needs a model, or an address of one, and none is set.'),
  ENGINE_UNSUPPORTED: row(501, 'input', false, 'ValueError', 'The engine cannot do what was asked of it.'),
  ENGINE_UNAVAILABLE: row(502, 'infrastructure', true, 'APIConnectionError', 'The engine cannot be reached or failed.'),
  ENGINE_OVERLOADED: row(503, 'infrastructure', true, 'RateLimitError', 'The engine takes no more requests now.'),
  ENGINE_UNAUTHORIZED: row(502, 'input', false, 'AuthenticationError', 'The engine refused the key.'),
  ENGINE_REQUEST_INVALID: row(400, 'input', false, 'BadRequestError', 'The engine refused a request as wrong.'),
  ENGINE_STREAM_BROKEN: row(502, 'infrastructure', true, 'APIConnectionError', 'The answer of the engine ended before its end.'),
  ENGINE_RESPONSE_INVALID: row(502, 'infrastructure', true, 'APIResponseValidationError', 'The answer of the engine is not in its dialect.'),
  ENGINE_STALLED: row(504, 'infrastructure', true, 'Timeout', 'The engine was silent for longer than allowed.'),
  CONTEXT_OVERFLOW: row(400, 'agent', false, 'ContextLengthExceededError', 'The conversation does not fit the context of the model.'),
  TRAJECTORY_INVALID: row(422, 'input', false, 'ValidationError', 'A trajectory document breaks a rule of its format.'),
  TRAJECTORY_WRITE_FAILED: row(503, 'infrastructure', true, 'OSError', 'A trajectory could not be written.'),
  AGENT_NOT_STOPPED: row(500, 'infrastructure', true, 'RuntimeError', 'Processes of the agent could not be proven dead before verification.'),
  STEP_SETUP_FAILED: row(422, 'task', false, 'RuntimeError', 'The setup script of a step failed.'),
  TESTS_UPLOAD_FAILED: row(503, 'infrastructure', true, 'AddTestsDirError', 'The tests could not be brought into the sandbox.'),
  VERIFIER_FAILED: row(500, 'verifier', true, 'RuntimeError', 'The verifier could not be run to its end.'),
  VERIFIER_TIMEOUT: row(504, 'verifier', false, 'VerifierTimeoutError', 'The verifier ran longer than its limit.'),
  VERIFIER_OUTPUT_UNAVAILABLE: row(503, 'infrastructure', true, 'DownloadVerifierDirError', 'The output of the verifier could not be read.'),
  REWARD_MISSING: row(422, 'verifier', false, 'RewardFileNotFoundError', 'The verifier wrote neither reward.json nor reward.txt.'),
  REWARD_EMPTY: row(422, 'verifier', false, 'RewardFileEmptyError', 'The reward file is empty.'),
  REWARD_INVALID: row(422, 'verifier', false, 'VerifierOutputParseError', 'The reward file is not a number or an object of numbers.'),
  REWARD_NOT_FINITE: row(422, 'verifier', false, 'VerifierOutputParseError', 'A reward is NaN or infinite.'),
  BACKEND_UNKNOWN: row(400, 'input', false, 'ValueError', 'No backend of this name is registered.'),
  WORKFLOW_INVALID: row(400, 'input', false, 'ValueError', 'The module of a workflow or grader cannot be loaded.'),
  WORKFLOW_TIMEOUT: row(504, 'agent', false, 'TimeoutError', 'The workflow ran longer than its deadline.'),
  WORKFLOW_FAILED: row(500, 'agent', true, 'RuntimeError', 'The workflow failed or ended its thread.'),
  GRADER_TIMEOUT: row(504, 'verifier', false, 'TimeoutError', 'The grader ran longer than its deadline.'),
  GRADER_FAILED: row(500, 'verifier', true, 'RuntimeError', 'The grader failed, or there is nothing to grade with.'),
  SAMPLE_INVALID: row(422, 'verifier', false, 'ValueError', 'The sample of a workflow, or its reward, cannot be used.'),
  CALLBACK_URL_REFUSED: row(422, 'input', false, 'ValueError', 'The operator does not allow to send anything to this address.'),
  CALLBACK_FAILED: row(502, 'infrastructure', true, 'HTTPStatusError', 'A callback was not taken by its receiver.'),
  CANCELLED: row(499, 'cancelled', false, 'CancelledError', 'The trial was cancelled.'),
  JOB_CONFLICT: row(409, 'input', false, 'FileExistsError', 'A job folder of this name holds a different job.'),
  JOB_UNREADABLE: row(422, 'input', false, 'ValueError', 'A job or trial folder cannot be read.'),
  REGRADE_IMPOSSIBLE: row(422, 'input', false, 'RegradeError', 'The finished trial cannot be graded again.'),
  LOCK_TIMEOUT: row(503, 'infrastructure', true, 'TimeoutError', 'Another process held a lock longer than the limit.'),
  JOURNAL_FAILED: row(503, 'infrastructure', false, 'OSError', 'The journal of sandboxes cannot be read or written.'),
  REQUEST_INVALID: row(422, 'input', false, 'ValueError', 'A request to the server is not valid.'),
  UNAUTHORIZED: row(401, 'input', false, 'PermissionError', 'A request carries no key, or one that the server does not know.'),
  FORBIDDEN: row(403, 'input', false, 'PermissionError', 'The caller may not do this.'),
  BODY_TOO_LARGE: row(413, 'input', false, 'ValueError', 'The body of a request is larger than the server takes.'),
  LISTEN_REFUSED: row(400, 'input', false, 'ValueError', 'An address cannot be listened on, or would be open to others without a key.'),
  SERVER_UNREACHABLE: row(503, 'infrastructure', true, 'ConnectionError', 'No rollout server answers at the address, or it is none.'),
  STORE_FAILED: row(503, 'infrastructure', false, 'OSError', 'The store of rollouts cannot be read or written.'),
  STORE_LOCKED: row(409, 'infrastructure', false, 'BlockingIOError', 'Another process uses this data folder.'),
  STORE_UNSUPPORTED: row(501, 'input', false, 'NotImplementedError', 'This store cannot do what was asked of it.'),
  STORE_TOO_NEW: row(409, 'infrastructure', false, 'ValueError', 'The data folder was written by a newer version of Slipway.'),
  ROUTE_KEY_INVALID: row(401, 'input', false, 'AuthenticationError', 'A model call carries no key of a rollout that is running.'),
  QUEUE_FULL: row(429, 'infrastructure', true, 'RateLimitError', 'All running and waiting places of the server are taken.'),
  ADMISSION_PAUSED: row(429, 'infrastructure', true, 'RateLimitError', 'The server takes no rollouts for now: too many in a row failed by the machine.'),
  QUEUE_TIMEOUT: row(504, 'infrastructure', true, 'TimeoutError', 'The rollout waited for a running place longer than its limit and did not start.'),
  ROLLOUT_INTERRUPTED: row(503, 'infrastructure', true, 'RuntimeError', 'The server died while the rollout ran, after its agent had begun.'),
  ROLLOUT_CONFLICT: row(409, 'input', false, 'FileExistsError', 'The id belongs to another rollout, or was cancelled before it came.'),
  SERVER_STOPPING: row(503, 'infrastructure', true, 'RuntimeError', 'The server is shutting down.'),
  INTERNAL: row(500, 'internal', false, 'RuntimeError', 'A defect in Slipway.'),
} as const satisfies Record<string, ErrorRow>;

export type ErrorCode = keyof typeof errorRegistry;
