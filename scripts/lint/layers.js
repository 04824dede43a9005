/**
 * The import table of `docs/architecture.md` as data: which folder under `src/` may import which others.
 * A folder may always import from itself. `tests/scripts/layers.test.ts` proves that the table, the page and the rule agree.
 */
export const layers = {
  core: [],
  wire: ['core'],
  config: ['core', 'wire'],
  store: ['core', 'wire'],
  trajectory: ['core', 'wire'],
  tasks: ['core', 'wire'],
  rewards: ['core', 'wire'],
  engines: ['core', 'wire'],
  telemetry: ['core', 'wire'],
  runner: ['core', 'wire'],
  environments: ['core', 'wire', 'store'],
  sessions: ['core', 'wire', 'engines'],
  callbacks: ['core', 'wire', 'store'],
  archive: ['core', 'wire', 'store', 'trajectory'],
  agents: ['core', 'wire', 'environments', 'trajectory', 'engines', 'runner'],
  verifier: ['core', 'wire', 'environments', 'tasks', 'rewards'],
  gateway: ['core', 'wire', 'sessions', 'engines', 'trajectory'],
  collector: ['core', 'wire', 'rewards', 'engines', 'store', 'callbacks'],
  trial: ['core', 'wire', 'store', 'tasks', 'environments', 'agents', 'verifier', 'trajectory'],
  jobs: ['core', 'wire', 'store', 'tasks', 'environments', 'agents', 'verifier', 'trial'],
  backends: [
    'core',
    'wire',
    'tasks',
    'environments',
    'agents',
    'verifier',
    'trajectory',
    'trial',
    'archive',
    'engines',
    'gateway',
    'runner',
  ],
  scheduler: ['core', 'wire', 'store', 'callbacks', 'archive', 'engines', 'gateway', 'backends'],
  'agent-server': ['core', 'wire', 'tasks', 'scheduler'],
  server: [
    'core',
    'wire',
    'store',
    'scheduler',
    'gateway',
    'agent-server',
    'collector',
    'telemetry',
  ],
  app: ['*'],
  cli: ['core', 'wire', 'config', 'app'],
};

/** Folders that hold one adapter per sub-folder: siblings never import each other, only `registry.ts` names them. */
export const adapterFolders = ['environments', 'agents', 'engines', 'store', 'backends'];

/** Sub-folders of an adapter folder that are shared pieces, not adapters. */
export const sharedParts = {
  environments: ['shared'],
  agents: ['shared', 'installed'],
  engines: ['shared', 'server'],
  store: [],
  backends: ['shared'],
};
