/** ROOT LIFE ORDER: runs native rollouts one after the other, tells the id of each whose trial has ended, then archives and releases it, until it is killed. */
import { mkdirSync, writeFileSync, writeSync } from 'node:fs';
import path from 'node:path';
import type { AgentFactory } from '../../../src/agents/agent.ts';
import { FileRolloutArchive } from '../../../src/archive/file-archive.ts';
import { silentLogger as logger } from '../../../src/core/logger.ts';
import { archiveRollout, rolloutFacts } from '../../../src/scheduler/archiving.ts';
import { outcomeOf } from '../../../src/scheduler/outcomes.ts';
import { rolloutRequestSchema } from '../../../src/wire/rollout/rollout-request.ts';
import { HeardHooks, nativeBench, requestFor } from '../../backends/native/native-bench.ts';

const [root = '', life = '', order = ''] = process.argv.slice(2);
let id = '';

const steps = Array.from({ length: 400 }, (_, index) => ({
  ...{ step_id: index + 1, source: 'user', message: 'x'.repeat(200) },
}));
const agent: AgentFactory = ({ logsDir }) => ({
  ...{ name: 'scripted', version: '1', hostFiles: ['trajectory.json'], hostOnlyVariables: [] },
  capabilities: { resume: false, loadTrajectory: false, windows: false },
  setup: () => Promise.resolve(),
  run: () => {
    mkdirSync(logsDir, { recursive: true });
    const document = { agent: { name: 'a', version: '1' }, steps, notes: id };
    writeFileSync(path.join(logsDir, 'trajectory.json'), JSON.stringify(document));
    return Promise.resolve();
  },
});

const bench = await nativeBench({
  resolveAgent: () => Promise.resolve(agent),
  dataDir: path.join(root, 'data'),
});
const archive = new FileRolloutArchive({ dir: path.join(root, 'archive'), logger });
for (let number = 1; ; number += 1) {
  id = `life-${life}-${number}`;
  const execution = bench.backend.execute(requestFor(bench.taskDir, { id }), new HeardHooks());
  const result = await execution.result;
  writeSync(1, `${id}\n`);
  const request = rolloutRequestSchema.parse({
    ...{ initial_messages: [], chat_completions_url: '', completion_callback_url: 'http://x/' },
  });
  const facts = rolloutFacts({ id, request, outcome: outcomeOf(result), version: '1' }, [result]);
  const save = async (): Promise<boolean> =>
    await archiveRollout(facts, { files: result.files, secrets: [] }, { archive, logger });
  if (order === 'reversed') await execution.release({ isComplete: true });
  const isComplete = await save();
  await execution.release({ isComplete });
}
