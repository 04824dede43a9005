/** What tests of the backend harbor share: a project in Python, tasks of a few files, and the backend on sandboxes of a test. */
import { existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { harborPython } from '../../../scripts/setup/harbor-peer.js';
import { HarborBackend } from '../../../src/backends/harbor/harbor-backend.ts';
import { NativeBackend } from '../../../src/backends/native/native-backend.ts';
import type { NativePorts } from '../../../src/backends/shared/trial-ports.ts';
import { systemClock } from '../../../src/core/clock.ts';
import { never } from '../../../src/core/linked-abort.ts';
import type { Logger } from '../../../src/core/logger.ts';
import type {
  EnvironmentLayer,
  EnvironmentProvider,
} from '../../../src/environments/environment.ts';
import type { TrialRequest } from '../../../src/trial/trial-options.ts';
import { taskFolder, type FolderFiles } from '../../fakes/task-folder.ts';
import { portsOn, type NativeBenchOptions } from '../native/native-bench.ts';

export const projectDir = path.join(import.meta.dirname, 'project');

/** The Python of this machine's cache, in a sandbox whose image has none: it runs at its own place only. */
const pythonDir = path.dirname(harborPython());
export const pythonLayer: EnvironmentLayer = { hostDir: pythonDir, at: pythonDir };

/** null = there is one. */
export function whyNoPython(): string | null {
  return existsSync(harborPython()) ? null : 'no Python for sandboxes (npm run setup -- tests)';
}

/** A template whose rows bring the prompt, and whose grader is the user's. */
export function templateTask(image: string, more = ''): FolderFiles {
  return {
    'task.toml': `[environment]\ndocker_image = "${image}"\nnetwork_mode = "no-network"\n${more}`,
    'environment/.gitkeep': '',
  };
}

export interface HarborBenchOptions extends Pick<NativeBenchOptions, 'resolveAgent'> {
  readonly provider: EnvironmentProvider;
  readonly files: FolderFiles;
  readonly options: Readonly<Record<string, unknown>>;
  readonly layers?: readonly EnvironmentLayer[];
  /** Told of each trial that is made. */
  readonly onTrial?: (request: TrialRequest) => void;
}

export interface HarborBench extends AsyncDisposable {
  readonly backend: HarborBackend;
  readonly taskDir: string;
  readonly dataDir: string;
  readonly ports: NativePorts;
  readonly warnings: string[];
}

export async function harborBench({
  provider,
  files,
  options,
  layers = [pythonLayer],
  onTrial = () => undefined,
  ...over
}: HarborBenchOptions): Promise<HarborBench> {
  const task = await taskFolder(files);
  const dataDir = await mkdtemp(path.join(os.tmpdir(), 'slipway-harbor-'));
  const warnings: string[] = [];
  const logger: Logger = {
    log: (level, message) => {
      if (level === 'warn') warnings.push(message);
    },
  };
  const ports = withLayers(portsOn(provider, over), layers, onTrial);
  const parts = {
    limits: { maxConcurrent: 8, maxQueueDepth: 8 },
    clock: systemClock,
    ...{ dataDir, baseDir: dataDir, logger },
  };
  const backend = new HarborBackend(
    { tasks_dir: task.dir, environment: provider.kind, sandbox_python: harborPython(), ...options },
    {
      ...parts,
      ports,
      interpreter: { python: 'python3', path: [] },
      variables: process.env,
      trialBackend: (given, own) => new NativeBackend(given, { ...parts, ports: own }),
    },
  );
  await backend.start(never);
  return {
    ...{ backend, dataDir, ports, warnings },
    taskDir: task.dir,
    [Symbol.asyncDispose]: async () => {
      await backend.close();
      await task[Symbol.asyncDispose]();
      await rm(dataDir, { recursive: true, force: true });
    },
  };
}

function withLayers(
  ports: NativePorts,
  layers: readonly EnvironmentLayer[],
  onTrial: (request: TrialRequest) => void,
): NativePorts {
  return {
    ...ports,
    openTrials: async (options, signal) => {
      const trials = await ports.openTrials(options, signal);
      return {
        ...trials,
        createTrial: (request, hooks) => {
          onTrial(request);
          const all = [...(request.layers ?? []), ...(request.layers?.length ? layers : [])];
          return trials.createTrial({ ...request, layers: all }, hooks);
        },
        [Symbol.asyncDispose]: () => trials[Symbol.asyncDispose](),
      };
    },
  };
}
