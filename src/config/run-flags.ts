/**
 * The flags of `slipway run` as a table: Harbor's spellings, what each takes and where a plain value goes in the job configuration.
 * Flags without a `path` have rules of their own in `merge-run-flags.ts`.
 */
export type FlagKind = 'text' | 'integer' | 'number' | 'on' | 'switch' | 'list';

export interface RunFlag {
  /** The name as the user writes it, `--n-attempts`; a `switch` has its `--no-…` too. */
  readonly name: `--${string}`;
  readonly short?: `-${string}`;
  readonly kind: FlagKind;
  /** What stands behind the flag in the help text; absent for `on` and `switch`. */
  readonly value?: string;
  readonly path?: readonly [string, ...string[]];
  /** Smallest allowed number. */
  readonly min?: number;
  readonly help: string;
  readonly group: 'Job' | 'Tasks' | 'Agent' | 'Environment' | 'Verifier';
}

// A table reads best with one row per line.
// prettier-ignore
export const runFlags: readonly RunFlag[] = [
  { group: 'Job', name: '--config', short: '-c', kind: 'text', value: 'FILE', help: 'job file (.yaml, .yml or .json); flags are merged over it' },
  { group: 'Job', name: '--print-config', kind: 'on', help: 'print the merged configuration without defaults and stop' },
  { group: 'Job', name: '--job-name', kind: 'text', value: 'NAME', path: ['job_name'], help: 'name of the job folder; an existing job of this name is resumed' },
  { group: 'Job', name: '--jobs-dir', short: '-o', kind: 'text', value: 'DIR', path: ['jobs_dir'], help: 'where job folders go (default: jobs)' },
  { group: 'Job', name: '--n-attempts', short: '-k', kind: 'integer', value: 'N', min: 1, path: ['n_attempts'], help: 'attempts per task and agent' },
  { group: 'Job', name: '--n-concurrent', short: '-n', kind: 'integer', value: 'N', min: 1, path: ['n_concurrent_trials'], help: 'trials at once (default: 4)' },
  { group: 'Job', name: '--max-retries', short: '-r', kind: 'integer', value: 'N', min: 0, path: ['retry', 'max_retries'], help: 'further tries of a trial that ended in an error' },
  { group: 'Job', name: '--retry-include', kind: 'list', value: 'TYPE', path: ['retry', 'include_exceptions'], help: 'retry only these exception types or error codes' },
  { group: 'Job', name: '--retry-exclude', kind: 'list', value: 'TYPE', path: ['retry', 'exclude_exceptions'], help: 'never retry these exception types or error codes' },
  { group: 'Job', name: '--timeout-multiplier', kind: 'number', value: 'X', min: 0, path: ['timeout_multiplier'], help: 'stretches every timeout' },
  { group: 'Job', name: '--agent-timeout-multiplier', kind: 'number', value: 'X', min: 0, path: ['agent_timeout_multiplier'], help: 'for the agent, instead of --timeout-multiplier' },
  { group: 'Job', name: '--verifier-timeout-multiplier', kind: 'number', value: 'X', min: 0, path: ['verifier_timeout_multiplier'], help: 'for the verifier' },
  { group: 'Job', name: '--agent-setup-timeout-multiplier', kind: 'number', value: 'X', min: 0, path: ['agent_setup_timeout_multiplier'], help: 'for agent setup' },
  { group: 'Job', name: '--environment-build-timeout-multiplier', kind: 'number', value: 'X', min: 0, path: ['environment_build_timeout_multiplier'], help: 'for building and starting the environment' },
  { group: 'Job', name: '--install-only', kind: 'on', path: ['install_only'], help: 'set up environment and agent, run nothing' },
  { group: 'Job', name: '--quiet', short: '-q', kind: 'on', path: ['quiet'], help: 'only the summary' },
  { group: 'Job', name: '--debug', kind: 'on', path: ['debug'], help: 'write debug lines to job.log' },
  { group: 'Job', name: '--env-file', kind: 'text', value: 'FILE', help: 'variables (NAME=value lines) for ${NAME} templates' },
  { group: 'Job', name: '--yes', short: '-y', kind: 'on', help: 'do not ask before host variables are used' },
  { group: 'Job', name: '--json', kind: 'on', help: 'print one JSON document at the end instead of text' },
  { group: 'Job', name: '--count-failures-as-zero', kind: 'on', help: 'count trials without a verdict as 0 in the summary' },
  { group: 'Tasks', name: '--path', short: '-p', kind: 'text', value: 'DIR', help: 'a task folder, or a folder of task folders' },
  { group: 'Tasks', name: '--task', short: '-t', kind: 'list', value: 'ORG/NAME[@REF]', help: 'a task package of the registry' },
  { group: 'Tasks', name: '--dataset', short: '-d', kind: 'list', value: 'NAME[@VERSION]', help: 'a dataset of the registry' },
  { group: 'Tasks', name: '--repo', kind: 'text', value: 'REPOSITORY', help: 'a git repository of tasks' },
  { group: 'Tasks', name: '--task-git-url', kind: 'text', value: 'URL', help: 'repository in which --path names a task' },
  { group: 'Tasks', name: '--task-git-commit', kind: 'text', value: 'SHA', help: 'commit for --task-git-url' },
  { group: 'Tasks', name: '--registry-url', kind: 'text', value: 'URL', help: 'registry file over HTTP for --dataset' },
  { group: 'Tasks', name: '--registry-path', kind: 'text', value: 'FILE', help: 'registry file on disk for --dataset' },
  { group: 'Tasks', name: '--include-task-name', short: '-i', kind: 'list', value: 'GLOB', help: 'only tasks with this name' },
  { group: 'Tasks', name: '--exclude-task-name', short: '-x', kind: 'list', value: 'GLOB', help: 'no tasks with this name' },
  { group: 'Tasks', name: '--n-tasks', short: '-l', kind: 'integer', value: 'N', min: 1, help: 'the first N tasks that are left' },
  { group: 'Tasks', name: '--extra-instruction', kind: 'list', value: 'TEXT', path: ['extra_instructions'], help: 'text put behind every instruction' },
  { group: 'Tasks', name: '--extra-instruction-path', kind: 'list', value: 'FILE', path: ['extra_instruction_paths'], help: 'a file put behind every instruction' },
  { group: 'Tasks', name: '--artifact', kind: 'list', value: 'PATH', path: ['artifacts'], help: 'a path in the sandbox to keep' },
  { group: 'Agent', name: '--agent', short: '-a', kind: 'list', value: 'NAME', help: 'oracle, nop, terminus-2 or module:Class (default: oracle); replaces the agents of the job file' },
  { group: 'Agent', name: '--agent-import-path', kind: 'list', value: 'MODULE:CLASS', help: 'an agent class of Harbor’s in Python; replaces the agents of the job file' },
  { group: 'Agent', name: '--python', kind: 'text', value: 'PROGRAM', help: 'the Python for agent classes (default: $SLIPWAY_PYTHON, else python3)' },
  { group: 'Agent', name: '--model', short: '-m', kind: 'list', value: 'MODEL', help: 'model, as in openai/NAME; several give one agent each' },
  { group: 'Agent', name: '--n-concurrent-agents', kind: 'integer', value: 'N', min: 1, help: 'agents at once, at most --n-concurrent' },
  { group: 'Agent', name: '--agent-kwarg', kind: 'list', value: 'KEY=VALUE', help: 'option of the agent, such as api_base=URL for its model; the value may be JSON' },
  { group: 'Agent', name: '--agent-env', kind: 'list', value: 'KEY=VALUE', help: 'variable for the agent, such as OPENAI_API_KEY; keys of models never enter the sandbox' },
  { group: 'Agent', name: '--allow-agent-host', kind: 'list', value: 'HOST', help: 'host that the agent may reach besides the task’s' },
  { group: 'Agent', name: '--resume-trajectory', kind: 'on', help: 'continue one conversation over the steps of a task' },
  { group: 'Agent', name: '--load-trajectory', kind: 'text', value: 'FILE', help: 'start from a trajectory' },
  { group: 'Agent', name: '--agent-include-logs', kind: 'list', value: 'GLOB', help: 'agent logs to keep' },
  { group: 'Agent', name: '--agent-exclude-logs', kind: 'list', value: 'GLOB', help: 'agent logs to leave' },
  { group: 'Agent', name: '--mcp-config', kind: 'list', value: 'FILE', help: 'MCP servers for the agent' },
  { group: 'Agent', name: '--skill', kind: 'list', value: 'SOURCE', help: 'skill for the agent' },
  { group: 'Environment', name: '--env', short: '-e', kind: 'text', value: 'TYPE', path: ['environment', 'type'], help: 'local or docker (default: local)' },
  { group: 'Environment', name: '--allow-environment-host', kind: 'list', value: 'HOST', help: 'host that the sandbox may reach besides the task’s' },
  { group: 'Environment', name: '--force-build', kind: 'switch', path: ['environment', 'force_build'], help: 'build images even when they exist' },
  { group: 'Environment', name: '--delete', kind: 'switch', path: ['environment', 'delete'], help: 'no effect: sandboxes are always removed, images kept' },
  { group: 'Environment', name: '--cpus', kind: 'text', value: 'POLICY', path: ['environment', 'cpu_enforcement_policy'], help: 'auto, limit, request, guarantee or ignore' },
  { group: 'Environment', name: '--memory', kind: 'text', value: 'POLICY', path: ['environment', 'memory_enforcement_policy'], help: 'the same for memory' },
  { group: 'Environment', name: '--override-cpus', kind: 'integer', value: 'N', min: 1, path: ['environment', 'override_cpus'], help: 'instead of the task’s cpus' },
  { group: 'Environment', name: '--override-memory-mb', kind: 'integer', value: 'N', min: 1, path: ['environment', 'override_memory_mb'], help: 'instead of the task’s memory_mb' },
  { group: 'Environment', name: '--override-storage-mb', kind: 'integer', value: 'N', min: 1, path: ['environment', 'override_storage_mb'], help: 'instead of the task’s storage_mb' },
  { group: 'Environment', name: '--override-gpus', kind: 'integer', value: 'N', min: 0, path: ['environment', 'override_gpus'], help: 'instead of the task’s gpus' },
  { group: 'Environment', name: '--override-tpu', kind: 'text', value: 'TYPE=TOPOLOGY', help: 'instead of the task’s tpu' },
  { group: 'Environment', name: '--mounts', kind: 'text', value: 'JSON', help: 'list of mounts; replaces those of the job file' },
  { group: 'Environment', name: '--extra-docker-compose', kind: 'list', value: 'FILE', help: 'a further compose file' },
  { group: 'Environment', name: '--gateway-url', kind: 'text', value: 'URL', path: ['environment', 'kwargs', 'gateway_url'], help: 'address of this machine’s gateway as remote sandboxes reach it: a tunnel, or a public one' },
  { group: 'Environment', name: '--environment-kwarg', kind: 'list', value: 'KEY=VALUE', help: 'option of the environment; the value may be JSON' },
  { group: 'Environment', name: '--allow-unsandboxed', kind: 'on', help: 'let local run plain processes where nothing better works: no isolation' },
  { group: 'Verifier', name: '--verifier-env', kind: 'list', value: 'KEY=VALUE', help: 'variable for the verifier' },
  { group: 'Verifier', name: '--verifier-kwarg', kind: 'list', value: 'KEY=VALUE', help: 'option of the verifier; the value may be JSON' },
  { group: 'Verifier', name: '--verifier-include-logs', kind: 'list', value: 'GLOB', help: 'verifier logs to keep' },
  { group: 'Verifier', name: '--verifier-exclude-logs', kind: 'list', value: 'GLOB', help: 'verifier logs to leave' },
  { group: 'Verifier', name: '--disable-verification', kind: 'on', path: ['verifier', 'disable'], help: 'run the agent only' },
];

/** Other spellings, Harbor's and ours, of the names above. */
export const runFlagAliases: Readonly<Record<string, RunFlag['name']>> = {
  '--silent': '--quiet',
  '--ak': '--agent-kwarg',
  '--ae': '--agent-env',
  '--skills': '--skill',
  '--mounts-json': '--mounts',
  '--ek': '--environment-kwarg',
  '--ve': '--verifier-env',
  '--attempts': '--n-attempts',
  '--concurrency': '--n-concurrent',
  '--retries': '--max-retries',
  '--environment': '--env',
  '--include': '--include-task-name',
  '--exclude': '--exclude-task-name',
};

/** What a command line gave, by flag name. */
export type FlagValues = Partial<
  Record<RunFlag['name'], string | boolean | readonly string[] | undefined>
>;
