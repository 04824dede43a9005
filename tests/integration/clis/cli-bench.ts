/**
 * One trial of a command line agent: the real program in a real sandbox, behind the gateway of a run, on a scripted model. What the program sends is kept.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { ProgramFolder } from '../../../src/agents/installed/program-folder.ts';
import { RunGateway } from '../../../src/app/run-gateway.ts';
import { runProgram } from '../../../src/app/run-program.ts';
import { serveEngine, type EngineFlags } from '../../../src/app/serve-engine.ts';
import { systemClock } from '../../../src/core/clock.ts';
import { never } from '../../../src/core/linked-abort.ts';
import { silentLogger } from '../../../src/core/logger.ts';
import { openEngine } from '../../../src/engines/registry.ts';
import { FileLocks } from '../../../src/store/file/file-lock.ts';
import type { AtifTrajectory } from '../../../src/wire/atif/atif.ts';
import type { TrialResult } from '../../../src/wire/harbor/trial-result.ts';
import { cacheDir, LocalBench } from '../../environments/local/local-bench.ts';
import { readEngineLog, type EngineLogLine } from '../../support/engine-process.ts';
import { filesBelow } from '../../support/files-below.ts';
import { runTrial } from '../../trial/trial-bench.ts';
import { RecordingFront, type RecordedCall } from './recording-front.ts';

/** Of the model: neither it nor an address may be found in a file of a trial. */
export const upstreamKey = 'sk-upstream-0123456789';

export const programs = new ProgramFolder({
  dir: path.join(cacheDir, 'agents'),
  locks: new FileLocks(systemClock),
  run: runProgram,
  variables: process.env,
  extraCaBundle: null,
});

export interface CliTrial {
  readonly agent: string;
  /** One entry per turn of the model, as `src/engines/mock/policies/tool-script.ts` reads them. */
  readonly script: readonly unknown[];
  readonly kwargs?: Readonly<Record<string, unknown>>;
  readonly env?: Readonly<Record<string, string>>;
  readonly engine?: EngineFlags;
  readonly timeoutSec?: number;
}

export interface CliOutcome {
  readonly result: TrialResult;
  /** What the program asked, in order. */
  readonly calls: readonly RecordedCall[];
  readonly engineLog: readonly EngineLogLine[];
  /** null = none was left. */
  readonly trajectory: AtifTrajectory | null;
  /** Text of every file of the trial, by path in its folder. */
  readonly files: ReadonlyMap<string, string>;
  /** Keys of the trial's route. */
  readonly keys: readonly string[];
}

/** Solved only by a file that the program's own tools write. */
export function scriptTask(script: readonly unknown[]): Readonly<Record<string, string>> {
  return {
    'task.toml':
      '[environment]\ndocker_image = "debian:bookworm-slim"\nworkdir = "/app"\nnetwork_mode = "no-network"\n',
    'instruction.md': `Follow the script.\n\n\`\`\`script\n${JSON.stringify(script)}\n\`\`\`\n`,
    'environment/.gitkeep': '',
    'tests/test.sh':
      '#!/bin/bash\nif [ "$(cat /app/answer 2>/dev/null)" = yes ]; then echo 1; else echo 0; fi > /logs/verifier/reward.txt\n',
  };
}

export async function runCli({
  agent,
  script,
  kwargs = {},
  env = {},
  engine: flags = {},
  timeoutSec = 300,
}: CliTrial): Promise<CliOutcome> {
  await using stack = new AsyncDisposableStack();
  const root = await mkdtemp(path.join(os.tmpdir(), 'slipway-cli-'));
  stack.defer(() => rm(root, { recursive: true, force: true }));
  const log = path.join(root, 'engine.ndjson');
  const variables = { ENGINE_KEY: upstreamKey };
  const engine = stack.use(
    await serveEngine(
      { policy: 'tool-script', port: '0', log, apiKeyEnv: 'ENGINE_KEY', ...flags },
      variables,
    ),
  );
  const gateway = stack.use(
    new RunGateway({ clock: systemClock, logger: silentLogger, openEngine }),
  );
  const front = stack.use(new RecordingFront());
  const local = stack.use(new LocalBench());
  const provider = local.provider({ runtime: 'runc' });
  stack.defer(() => provider.close());
  await provider.preflight(never);
  const keys: string[] = [];
  let trajectory: AtifTrajectory | null = null;
  let files: ReadonlyMap<string, string> = new Map();
  const result = await runTrial(
    {
      provider,
      files: scriptTask(script),
      config: {
        agent: {
          name: agent,
          model_name: 'openai/mock',
          kwargs: { api_base: `${engine.url}/v1`, engine_kind: 'vllm', ...kwargs },
          env: { ...env, OPENAI_API_KEY: upstreamKey },
          override_timeout_sec: timeoutSec,
        },
      },
      parts: {
        programs,
        openRoute: async (upstream, kept) => {
          const route = await gateway.open(upstream, kept);
          keys.push(route.apiKey);
          return { ...route, baseUrl: await front.before(route.baseUrl) };
        },
      },
    },
    async ({ trial }) => {
      files = await filesBelow(trial.dir);
      const text = files.get('agent/trajectory.json');
      if (text !== undefined) trajectory = JSON.parse(text) as AtifTrajectory;
    },
  );
  const engineLog = await readEngineLog(log).catch(() => []);
  const { calls } = front;
  return { result, calls, engineLog, trajectory, files, keys };
}
