/** Everything that a trainer has around it: an engine that serves the policy, and `slipway serve` with the workflow, in processes as they would be on a machine. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { systemClock } from '../../src/core/clock.ts';
import { Scope } from '../../src/core/scope.ts';
import type { Engine } from '../../src/engines/engine.ts';
import { openEngine } from '../../src/engines/registry.ts';
import { startEngineServer } from '../../src/engines/server/engine-server.ts';
import { loadVocabulary } from '../../src/engines/server/vocabulary/load-vocabulary.ts';
import { ServerRollouts } from '../../src/collector/server/server-rollouts.ts';
import { startInBackground } from '../../scripts/quickstart/background-command.js';
import { newPolicy, PolicyCodec, PolicyModel } from './policy-model.ts';

const workflow = fileURLToPath(new URL('pair-workflow.js', import.meta.url));

export interface LearningStack extends AsyncDisposable {
  readonly model: PolicyModel;
  readonly codec: PolicyCodec;
  /** The engine's own routes, for updates of its weights. */
  readonly engine: Engine;
  readonly engineUrl: string;
  readonly rollouts: ServerRollouts;
}

export async function startStack(seed: number): Promise<LearningStack> {
  const scope = new Scope();
  try {
    const codec = new PolicyCodec(await loadVocabulary(null));
    const model = new PolicyModel(codec, newPolicy(), seed);
    const server = await startEngineServer({ model, seed });
    scope.defer(() => server.close());
    const engine = await openEngine({ kind: 'sglang', baseUrl: server.url, apiKey: null });
    scope.defer(() => engine.close());
    const dir = await mkdtemp(path.join(os.tmpdir(), 'slipway-learn-'));
    scope.defer(() => rm(dir, { recursive: true, force: true }));
    const config = path.join(dir, 'slipway.toml');
    await writeFile(config, configText());
    const serve = await startInBackground(['serve', '--config', config]);
    scope.defer(() => serve.stop());
    const rollouts = new ServerRollouts({
      ...{ serverUrl: serve.url, serverKey: null, modelUrl: `${server.url}/v1`, modelKey: null },
      ...{ train: true, isGraded: true, agentTimeoutSec: 60, graderTimeoutSec: 60 },
      ...{ listen: {}, watchMs: 1_000, patienceMs: 300_000, clock: systemClock, fetch },
    });
    scope.defer(() => rollouts.close());
    return {
      ...{ model, codec, engine, engineUrl: server.url, rollouts },
      [Symbol.asyncDispose]: () => scope[Symbol.asyncDispose](),
    };
  } catch (error) {
    await scope[Symbol.asyncDispose]();
    throw error;
  }
}

function configText(): string {
  return `
data_dir = "data"

[listen]
port = 0
data_port = 0

[gateway]
engine_kind = "sglang"

[backend]
kind = "local"

[backend.local]
workflow = ${JSON.stringify(`${workflow}:PairWorkflow`)}
grader = ${JSON.stringify(`${workflow}:PairGrader`)}
`;
}
