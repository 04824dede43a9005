/**
 * Every setting of `slipway serve`, once: its place in the file, its flag, its variable, its default and what it does all follow from this table.
 * A setting at `section.name_of_it` has the variable `SLIPWAY_SECTION_NAME_OF_IT` and, unless the table names another, the flag `--section-name-of-it`.
 */
import {
  choice,
  flag,
  folder,
  listOf,
  moduleExport,
  number,
  preparation,
  program,
  requirements,
  samplingPins,
  searchPath,
  seconds,
  secretPlace,
  secretTable,
  table,
  tableOrObject,
  taskReferences,
  text,
  whole,
  word,
  type Kind,
  type Setting,
  type TaskReference,
} from './setting.ts';

type EngineKind = 'chat' | 'vllm' | 'sglang';

type Extras = Pick<Setting<never>, 'key' | 'flag' | 'otherVariable'>;

function setting<T>(kind: Kind<T>, fallback: T, what: string, extras: Extras = {}): Setting<T> {
  return { kind, what, fallback: { value: fallback }, ...extras };
}

function derived<T>(
  kind: Kind<T>,
  fallback: { readonly says: string; readonly of: (get: (path: string) => unknown) => T },
  what: string,
  extras: Extras = {},
): Setting<T> {
  return { kind, what, fallback, ...extras };
}

const listed = listOf(text as Kind<string>);
const keyPlaces = listOf(secretPlace as Kind<string>);
const port = whole(0, 65_535);
const anyCount = whole(1);
const optionalWhole = whole(16) as Kind<number | null>;
const optionalCount = whole(1) as Kind<number | null>;
const optionalNumber = number(0.001) as Kind<number | null>;
const optionalWord = word as Kind<string | null>;
const optionalTable = table as Kind<Readonly<Record<string, unknown>> | null>;
const tasks = taskReferences as Kind<readonly TaskReference[] | null>;

export const loopbackHosts: readonly unknown[] = ['127.0.0.1', '::1', 'localhost'];

// A table reads best with one row per line.
// prettier-ignore
export const settings = {
  dataDir: derived(folder, { says: 'server/ in the state folder', of: () => null }, 'folder for everything that this server keeps; one server per folder'),
  listen: {
    host: setting(word, '127.0.0.1', 'address of the control listener', { flag: 'host' }),
    port: setting(port, 8000, 'port of the control listener; 0 = any free one', { flag: 'port', otherVariable: '_OSMOSIS_ROLLOUT_PORT' }),
    dataHost: derived(word, { says: 'listen.host', of: (get) => get('listen.host') as string }, 'address of the listener for model calls', { flag: 'data-host' }),
    dataPort: derived(port, { says: 'the next after listen.port', of: (get) => nextPort(get('listen.port') as number) }, 'port of the listener for model calls; 0 = any free one', { flag: 'data-port' }),
    gatewayUrl: setting(text, null, 'address of the listener for model calls as sandboxes on other machines reach it: a tunnel, or a public one; {port} in it stands for the port', { flag: 'gateway-url' }),
    allowFrom: setting(listed, [], 'addresses or networks (CIDR) that may use the control listener without a key', { flag: 'allow-from' }),
    instanceId: setting(text, null, 'what `/health` says as instance_id', { otherVariable: '_OSMOSIS_ROLLOUT_INSTANCE_ID' }),
  },
  keys: {
    control: setting(keyPlaces, [], 'where the keys of the operator are; each of them is good', { flag: 'control-key' }),
  },
  store: {
    kind: setting(choice('sqlite', 'memory'), 'sqlite', 'where rollouts are kept; memory forgets them when the process ends', { flag: 'store' }),
  },
  backend: {
    kind: setting(word, 'native', 'how rollouts are executed: native, harbor, local or null', { flag: 'backend' }),
    native: {
      agent: derived(optionalWord, { says: '`terminus-2`, without agent_config', of: () => null }, 'agent of every trial, or an import path (module:Class)'),
      model: derived(optionalWord, { says: 'that of agent_config, else `openai/osmosis-rollout`', of: () => null }, 'name of the model that the agent asks for: openai/NAME'),
      agentOptions: setting(optionalTable, null, 'options of the agent'),
      agentConfig: setting(optionalTable, null, 'the whole configuration of the agent, as Harbor spells it, instead of agent and agent_options'),
      binding: derived(optionalWord, { says: 'the agent’s name', of: () => null }, 'how the agent gets its model; needed for an import path'),
      environment: derived(optionalWord, { says: '`local`, without environment_config', of: () => null }, 'environment of every trial'),
      environmentOptions: setting(optionalTable, null, 'options of the environment'),
      environmentConfig: setting(optionalTable, null, 'the whole configuration of the environment, as Harbor spells it, instead of environment and environment_options'),
      verifierConfig: setting(optionalTable, null, 'the configuration of the verifier, as Harbor spells it'),
      prewarm: setting(tasks, null, 'tasks whose environment and agent are set up once before the server listens'),
      allowUnsandboxed: setting(flag, false, 'plain processes without isolation are allowed'),
      allowUnverifiedAgent: setting(flag, false, 'agents whose binding is not verified are allowed'),
      taskKey: setting(word, 'harbor_task', 'key of the metadata that names the task'),
      rewardKey: setting(word, 'reward', 'channel of the verifier that is the reward'),
      agentSetupTimeoutSec: setting(optionalNumber, null, 'longest set-up of the agent, in seconds (default: as for every trial)'),
      removeSuccessfulTrials: setting(flag, true, 'trial folders of successful trials go when the archive has taken their files'),
    },
    harbor: {
      tasksDir: setting(folder, null, 'the task of every rollout, or the folder of a dataset of tasks'),
      taskMode: setting(choice('template', 'dataset'), 'template', 'rows bring the prompt of one task, or name a task by harbor_task_id'),
      agent: setting(optionalWord, null, 'the AgentWorkflow as module:Class, or the name of an agent'),
      agentOptions: setting(optionalTable, null, 'options of a named agent'),
      workflowConfig: setting(table, {}, 'given to the constructor of the workflow'),
      grader: setting(optionalWord, null, 'the Grader as module:Class, for tasks without tests'),
      graderConfig: setting(table, {}, 'given to the constructor of the grader'),
      codeDir: setting(folder, null, 'the project that is brought into the sandboxes, read-only'),
      requirements: setting(requirements, null, 'packages that workflow and grader need: a file of requirements, or a list'),
      prewarm: setting(preparation, null, 'tasks that are set up once before the server listens; true = the template'),
      sandboxPython: setting(word, 'python3', 'the Python of the sandboxes that runs workflow and grader'),
      model: setting(optionalWord, null, 'name of the model that a named agent asks for: openai/NAME'),
      environment: setting(word, 'local', 'environment of every trial'),
      environmentOptions: setting(optionalTable, null, 'options of the environment'),
      allowUnsandboxed: setting(flag, false, 'plain processes without isolation are allowed'),
      agentSetupTimeoutSec: setting(optionalNumber, null, 'limit of setting the agent up (default: its own)'),
      removeSuccessfulTrials: setting(flag, true, 'folders of successful trials are removed once they are archived'),
    },
    local: {
      workflow: setting(moduleExport, null, 'the AgentWorkflow'),
      grader: setting(moduleExport, null, 'the Grader'),
      workflowConfig: setting(tableOrObject, {}, 'given to the constructor of the workflow'),
      graderConfig: setting(tableOrObject, {}, 'given to the constructor of the grader'),
      memoryMb: setting(optionalWhole, null, 'heap of one worker thread (default: 512), or data of one Python process (default: no limit)'),
    },
  },
  python: {
    interpreter: setting(program, 'python3', 'the Python that carries out workflows, graders and agents in Python', { flag: 'python', otherVariable: 'SLIPWAY_PYTHON' }),
    path: setting(searchPath, [], 'folders where it looks for modules first', { otherVariable: 'SLIPWAY_PYTHONPATH' }),
  },
  admission: {
    maxConcurrent: setting(anyCount, 8, 'rollouts that run at once', { flag: 'max-concurrent' }),
    maxQueueDepth: derived(whole(0), { says: 'admission.max_concurrent', of: (get) => get('admission.maxConcurrent') as number }, 'rollouts that may wait beyond the running ones', { flag: 'max-queue-depth' }),
    queueTimeoutMs: setting(seconds(1), 3_600_000, 'longest wait for a running place', { key: 'queue_timeout_sec' }),
    pauseAfterFailures: setting(whole(0), 5, 'infrastructure failures in a row after which admission pauses; 0 = never'),
    pauseRetryMs: setting(seconds(0.1), 30_000, 'after a pause of this length one rollout is tried', { key: 'pause_retry_sec' }),
  },
  engine: {
    url: setting(text, null, 'engine whose KV use caps what runs'),
    kind: setting(choice('sglang', 'vllm'), 'sglang', 'dialect of that engine'),
    key: setting(secretPlace, null, 'where the key of that engine is'),
    kvHigh: setting(number(0, 1), 0.9, 'share of the KV cache in use at which fewer rollouts run'),
    kvLow: setting(number(0, 1), 0.8, 'share below which more may run again'),
  },
  gateway: {
    sampling: setting(samplingPins, {}, 'parameters that take the place of what agents ask for, in every call of every rollout'),
    maxTurns: setting(optionalCount, null, 'calls of a rollout that its model answers'),
    maxRequests: setting(optionalCount, null, 'calls of a rollout, whatever becomes of them'),
    maxSampledTokens: setting(optionalCount, null, 'tokens of all answers of a rollout together'),
    maxInFlight: setting(anyCount, 64, 'calls of a rollout at the same time'),
    workers: setting(whole(0), 0, 'processes that serve model calls, each on a port of its own from listen.data_port on; 0 = the server serves them itself'),
    capture: setting(flag, true, 'every model call of a rollout is kept for the archive'),
    captureBytes: setting(whole(1024), 1024 ** 3, 'of one rollout no more than this is kept, about'),
    engineKind: derived(choice('chat', 'vllm', 'sglang'), { says: 'engine.kind where engine.url is set, else chat', of: (get) => get('engine.url') === null ? 'chat' : (get('engine.kind') as EngineKind) }, 'what answers behind the addresses of controllers; vllm and sglang are asked for token ids and log-probabilities of captured calls'),
    mode: setting(choice('relay', 'tokens'), 'relay', 'who makes the ids of prompts: the engine, or the gateway with the words of sessions.tokenizer'),
    matcher: setting(word, 'loose_tool_call', 'in the mode tokens, what makes messages equal: as sessions.matcher'),
  },
  sessions: {
    url: setting(text, null, 'engine or router, without /v1, that sessions with token ids ask; none = no session routes'),
    key: setting(secretPlace, null, 'where the key of that engine is'),
    version: setting(choice('v1', 'v2'), 'v1', 'protocol of the session routes: one line of turns, or a tree'),
    tokenizer: setting(folder, null, 'folder of the checkpoint whose vocabulary and chat template sessions use'),
    family: setting(word, 'default', 'family of the model, which says what its template does'),
    template: setting(folder, null, 'a chat template in place of the one of the checkpoint'),
    templateVariables: setting(table, {}, 'variables for the chat template, below what requests say'),
    matcher: setting(word, 'strict', 'what makes messages equal: strict, loose_tool_call, role_content_only, or path/to/file.ts:function'),
    picker: setting(word, 'drop_retries', 'which leaves of a tree become samples: drop_retries, or path/to/file.ts:function'),
    postprocessor: setting(word, 'default_postprocess', 'what is done to those: default_postprocess, or path/to/file.ts:function'),
    routedExpertsLayers: setting(optionalCount, null, 'layers of the model that choose experts: each turn is asked for its routed experts, which become tensors of samples; none = nobody asks'),
    indexerTopk: setting(flag, false, 'each turn is asked for its indexer_topk, which become tensors of samples'),
    pauseMode: setting(choice('abort', 'retract', 'in_place'), 'retract', 'how the trainer pauses the engine; where in place, turns say only the rows of routed experts that are new'),
    maxIdleMs: setting(seconds(1), 86_400_000, 'a session that is not used for so long is gone', { key: 'max_idle_sec' }),
    maxBytes: setting(optionalCount, null, 'what all sessions of one process may take of memory, about; none = half of the heap that it may have'),
    timeoutMs: setting(seconds(1), 600_000, 'longest wait for an answer of the engine', { key: 'timeout_sec' }),
  },
  agentServer: {
    tasksDir: setting(folder, null, 'folder of the tasks that `/run` names by instance_id; none = every request is answered with TaskNotFound', { otherVariable: 'HARBOR_TASKS_DIR' }),
    agent: setting(word, 'mini-swe-agent', 'agent of a `/run` that names none'),
    adminSecret: setting(secretPlace, null, 'where the secret for /flush, /flush_all and /clients is (default: HARBOR_ADMIN_SECRET, where it is set)'),
    trainerTimeoutMs: setting(seconds(120), 7_200_000, 'after this the trainer gives a `/run` up; it is answered 60 s before', { key: 'trainer_timeout_sec', otherVariable: 'AGENT_TRIAL_TIMEOUT' }),
    agentTimeoutSec: setting(optionalNumber, null, 'limit of the agent in the place of the task’s, below that of the trainer', { flag: 'agent-timeout' }),
    heartbeatIntervalMs: setting(seconds(1), 120_000, 'how often the session server of every client is asked whether it is still the same', { key: 'heartbeat_interval_sec', otherVariable: 'HEARTBEAT_INTERVAL_SEC' }),
    heartbeatTimeoutMs: setting(seconds(1), 120_000, 'longest wait for its answer', { key: 'heartbeat_timeout_sec', otherVariable: 'HEARTBEAT_TIMEOUT_SEC' }),
    heartbeatFailures: setting(anyCount, 3, 'failures in a row after which the trials of a client are flushed', { otherVariable: 'HEARTBEAT_FAILURE_THRESHOLD' }),
    pruneIntervalMs: setting(seconds(1), 1_800_000, 'how often what dead runs of Slipway left is looked for', { key: 'prune_interval_sec', otherVariable: 'DOCKER_PRUNE_INTERVAL_SEC' }),
    maxWaiting: setting(whole(0), 4096, 'requests to `/run` that may wait for a place in the queue'),
  },
  collections: {
    dir: setting(folder, null, 'folder of the datasets that collections may name; none = their rows come in the request'),
  },
  rollouts: {
    train: setting(flag, false, 'samples are made of rollouts that do not say so themselves'),
    trainSummaries: setting(flag, false, 'summaries that an agent made of its history are trained too'),
    picker: setting(word, 'drop_retries', 'which branches become samples: drop_retries, every_branch, or path/to/file.ts:function'),
    maxSampleTokens: setting(optionalCount, null, 'of one sample; what is longer is cut'),
    routedExperts: setting(flag, false, 'the engine is asked for the experts that it routed each token to'),
    indexerTopk: setting(flag, false, 'the engine is asked for what its sparse attention chose for each token'),
  },
  callbacks: {
    allow: setting(listed, [], 'origins or URL prefixes that callbacks and model calls may go to; empty = any'),
    privateAddresses: derived(choice('allow', 'deny'), { says: 'allow when listen.host is a loopback address, else deny', of: (get) => loopbackHosts.includes(get('listen.host')) ? 'allow' : 'deny' }, 'whether they may go to private, loopback and link-local addresses'),
    maxAgeMs: setting(seconds(1), 86_400_000, 'a callback that nobody takes becomes a dead letter after this', { key: 'max_age_sec' }),
  },
  queue: {
    url: setting(listed, [], 'NATS servers, by which hosts of `slipway worker` execute the rollouts; none = this process does', { flag: 'queue' }),
    prefix: setting(word, 'slipway', 'name of the service on these servers: its front end and its workers have the same'),
    replicas: setting(optionalCount, null, 'copies of what the servers keep (default: 3 in a cluster, else 1)'),
    leaseMs: setting(seconds(2), 10_000, 'a worker that is not heard for so long ends what it runs; half as long again, and it is lost', { key: 'lease_sec' }),
    user: setting(text, null, 'user of the servers'),
    password: setting(secretPlace, null, 'where the password of that user is'),
    token: setting(secretPlace, null, 'where the token for the servers is'),
    credentials: setting(folder, null, 'file of credentials for the servers'),
    tlsCa: setting(folder, null, 'file with the certificates that sign those of the servers'),
    tlsCert: setting(folder, null, 'file with the certificate to show to the servers'),
    tlsKey: setting(folder, null, 'file with the key of that certificate'),
    hostName: derived(text, { says: 'the name of the machine', of: () => null }, 'what a worker is called in lists and logs'),
  },
  limits: {
    diskFloorBytes: setting(whole(0), 64 * 1024 * 1024, 'no rollout is accepted while the disk of the data folder has less free space'),
    bodyBytes: setting(whole(1024), 16 * 1024 * 1024, 'largest body of a request to the control listener'),
  },
  retention: {
    maxAgeMs: setting(seconds(1), 7 * 86_400_000, 'ended rollouts and events older than this go', { key: 'max_age_sec' }),
    maxEnded: setting(whole(0), 100_000, 'ended rollouts beyond this many go, oldest first'),
    archiveBytes: setting(whole(0), 20 * 1024 ** 3, 'the archive is trimmed to this size'),
  },
  log: {
    level: setting(choice('debug', 'info', 'warn', 'error'), 'info', 'least level that is written'),
    maxBytes: setting(whole(4096), 64 * 1024 * 1024, 'a log file of this size is rotated'),
    keep: setting(whole(0), 5, 'rotated log files that are kept'),
  },
  telemetry: {
    otlpUrl: setting(text, null, 'collector that spans are sent to by OTLP over HTTP; needs the OpenTelemetry packages'),
    otlpHeaders: setting(secretTable, {}, 'headers for that collector, each by the place of its value'),
    serviceName: setting(word, 'slipway', 'name of this service in spans'),
  },
  shutdown: {
    drainMs: setting(seconds(0), 10_000, 'running rollouts may go on for this long after the first signal', { key: 'drain_sec' }),
  },
};

/** One tenant, in `[tenants.NAME]` only: tenants have neither flags nor variables. */
// prettier-ignore
export const tenantSettings = {
  key: setting(keyPlaces, [], 'where the keys of the tenant are'),
  idPrefix: setting(text, null, 'rollouts whose id begins with this belong to it when no key says whose they are'),
  weight: setting(number(0.001), 1, 'its share, beside those of the others'),
};

function nextPort(of: number): number {
  return of === 0 || of === 65_535 ? 0 : of + 1;
}

type Values<Tree> = {
  readonly [Name in keyof Tree]: Tree[Name] extends Setting<infer T> ? T : Values<Tree[Name]>;
};

/** What `slipway serve` runs with; frozen. */
export type ServeSettings = Values<typeof settings>;
export type TenantSettings = Values<typeof tenantSettings>;
