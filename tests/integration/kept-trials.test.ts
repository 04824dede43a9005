/** What cannot be archived keeps its trial, and a warning names it; what can be is on disk before the trial goes. Real archive, real scheduler, real native backend. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import type { AgentFactory } from '../../src/agents/agent.ts';
import { FileRolloutArchive } from '../../src/archive/file-archive.ts';
import { folderName } from '../../src/archive/folder-name.ts';
import type { Execution } from '../../src/backends/execution-backend.ts';
import { archiveRollout, rolloutFacts } from '../../src/scheduler/archiving.ts';
import { outcomeOf } from '../../src/scheduler/outcomes.ts';
import type { Logger } from '../../src/core/logger.ts';
import { rolloutRequestSchema } from '../../src/wire/rollout/rollout-request.ts';
import { killArchiving } from '../chaos/archive/killed-archive.ts';
import { HeardHooks, nativeBench, requestFor } from '../backends/native/native-bench.ts';
import { answerTask } from '../trial/trial-bench.ts';

const document = (message = 'hi') => ({
  schema_version: 'ATIF-v1.7',
  agent: { name: 'a', version: '1' },
  steps: [{ step_id: 1, source: 'user', message }],
});

/** An agent that solves the task and leaves in its log folder what a test wants. */
const leaving =
  (leave: (logsDir: string) => Promise<void>): AgentFactory =>
  ({ logsDir }) => ({
    ...{ name: 'scripted', version: '1', hostFiles: ['trajectory.json'], hostOnlyVariables: [] },
    capabilities: { resume: false, loadTrajectory: false, windows: false },
    setup: () => Promise.resolve(),
    run: async ({ environment }, signal) => {
      await environment.exec({ command: 'mkdir -p /app && echo yes > /app/answer' }, signal);
      await leave(logsDir);
    },
  });

interface Kept {
  readonly isTrialKept: boolean;
  /** Of level `warn`, with their fields. */
  readonly warnings: string;
  readonly archived: readonly string[];
}

/** Runs one rollout to the end of its release, as the scheduler does. */
async function keep(
  t: TestContext,
  leave: (logsDir: string) => Promise<void>,
  over: {
    /** Where the archive is; absent = a folder with room. */
    readonly archiveDir?: string;
    /** Meddles with the trial's folder before it is archived. */
    readonly before?: (trialDir: string) => Promise<void>;
    /** Seen between the archive and the release. */
    readonly between?: (execution: Execution, archive: FileRolloutArchive) => Promise<void>;
  } = {},
): Promise<Kept> {
  const warnings: string[] = [];
  const logger: Logger = {
    log: (level, message, fields) =>
      level === 'warn' && warnings.push(`${message} ${JSON.stringify(fields ?? {})}`),
  };
  const resolveAgent = () => Promise.resolve(leaving(leave));
  await using bench = await nativeBench({ resolveAgent, files: answerTask, logger });
  warnings.length = 0; // of the start
  const archiveDir = over.archiveDir ?? (await mkdtemp(path.join(os.tmpdir(), 'slipway-kept-')));
  if (over.archiveDir === undefined) t.after(() => rm(archiveDir, { recursive: true }));
  const archive = new FileRolloutArchive({ dir: archiveDir, logger });
  const request = requestFor(bench.taskDir);
  const execution = bench.backend.execute(request, new HeardHooks());
  const result = await execution.result;
  assert.equal(result.status, 'success', result.errMessage ?? '');
  const trialDir = path.join(bench.dataDir, 'trials', `native-${folderName(request.id)}`);
  await over.before?.(trialDir);
  const outcome = outcomeOf(result);
  const wire = rolloutRequestSchema.parse({
    ...{ initial_messages: [], chat_completions_url: '', completion_callback_url: 'http://x/' },
  });
  const facts = rolloutFacts({ id: request.id, request: wire, outcome, version: '1' }, [result]);
  const kept = { files: result.files, secrets: [] };
  const isComplete = await archiveRollout(facts, kept, { archive, logger });
  await over.between?.(execution, archive);
  await execution.release({ isComplete });
  const archived = await archive.list(request.id);
  return {
    isTrialKept: existsSync(trialDir),
    warnings: warnings.join('\n'),
    archived: archived.map((file) => file.path),
  };
}

const put = async (logsDir: string, text: string): Promise<void> => {
  await mkdir(logsDir, { recursive: true });
  await writeFile(path.join(logsDir, 'trajectory.json'), text);
};
const well = (logsDir: string): Promise<void> => put(logsDir, JSON.stringify(document()));
const names = /native-tenant%3A%3Ar-1/;

describe('the trial of a rollout that went well', () => {
  it('goes when everything of it is archived, without a warning', async (t) => {
    const { isTrialKept, warnings, archived } = await keep(t, well);
    assert.deepEqual([isTrialKept, warnings], [false, '']);
    assert.ok(archived.includes('trajectory.json') && archived.includes('logs/trial.log'));
  });

  it('is there until the archive has all of it on disk', async (t) => {
    let isSeen = false;
    await keep(t, well, {
      between: async (_execution, archive) => {
        isSeen = (await archive.document('tenant::r-1', 'trajectory.json')) !== null;
      },
      before: (trialDir) => {
        assert.ok(existsSync(path.join(trialDir, 'agent', 'trajectory.json')));
        return Promise.resolve();
      },
    });
    assert.equal(isSeen, true);
  });

  const unreadable: readonly (readonly [string, (logsDir: string) => Promise<void>, RegExp])[] = [
    ['is no JSON', (dir) => put(dir, '{'), /agent\/trajectory\.json: .*JSON/],
    ['is not valid', (dir) => put(dir, '{"steps": 1}'), /agent\/trajectory\.json: trajectory\./],
    [
      'has a key that the format does not know',
      (dir) => put(dir, JSON.stringify({ ...document(), mine: 1 })),
      /trajectory\.mine/,
    ],
  ];
  for (const [what, leave, wrong] of unreadable)
    it(`stays when its trajectory ${what}`, async (t) => {
      const { isTrialKept, warnings, archived } = await keep(t, leave);
      assert.equal(isTrialKept, true);
      assert.match(warnings, wrong);
      assert.match(warnings, names);
      assert.equal(archived.includes('trajectory.json'), false);
    });

  const links: readonly (readonly [string, (trialDir: string) => Promise<void>, RegExp])[] = [
    [
      'the folder of its artifacts',
      async (dir) => {
        await rm(path.join(dir, 'artifacts'), { recursive: true, force: true });
        await symlink('/etc', path.join(dir, 'artifacts'));
      },
      /"artifacts".*it is a link/,
    ],
    [
      'one of its artifacts',
      async (dir) => {
        await mkdir(path.join(dir, 'artifacts'), { recursive: true });
        await symlink('/etc/passwd', path.join(dir, 'artifacts', 'users'));
      },
      /"artifacts\/users".*it is a link/,
    ],
    [
      'a folder among its artifacts',
      async (dir) => {
        await mkdir(path.join(dir, 'artifacts', 'deep'), { recursive: true });
        await symlink('/etc', path.join(dir, 'artifacts', 'deep', 'etc'));
      },
      /"artifacts\/deep\/etc".*it is a link/,
    ],
  ];
  for (const [what, before, wrong] of links)
    it(`stays when ${what} is a link, which is not followed`, async (t) => {
      // What the backend names is what it found: the links are there before the agent ends.
      const leave = async (logsDir: string): Promise<void> => {
        await well(logsDir);
        await mkdir(path.join(logsDir, '..', 'artifacts'), { recursive: true });
      };
      const { isTrialKept, warnings, archived } = await keep(t, leave, { before });
      assert.equal(isTrialKept, true);
      assert.match(warnings, wrong);
      assert.match(warnings, names);
      assert.equal(
        archived.some((name) => name.includes('passwd') || name.includes('users')),
        false,
      );
    });

  it('stays when the disk of the archive is full, and nothing half is under a name', async (t) => {
    const root = await mkdtemp(path.join(os.tmpdir(), 'slipway-full-'));
    const disk = path.join(root, 'disk');
    await mkdir(disk);
    try {
      execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=64k', 'tmpfs', disk], { stdio: 'ignore' });
    } catch {
      await rm(root, { recursive: true });
      t.skip('this user may not mount');
      return;
    }
    t.after(async () => {
      execFileSync('umount', [disk]);
      await rm(root, { recursive: true });
    });
    const leave = (logsDir: string) => put(logsDir, JSON.stringify(document('x'.repeat(200_000))));
    const archiveDir = path.join(disk, 'archive');
    const { isTrialKept, warnings, archived } = await keep(t, leave, { archiveDir });
    assert.equal(isTrialKept, true);
    assert.match(warnings, /"trajectory\.json".*ENOSPC/);
    assert.match(warnings, names);
    assert.equal(archived.includes('trajectory.json'), false);
    for (const name of readdirSync(path.join(archiveDir, folderName('tenant::r-1'))))
      if (name.endsWith('.json'))
        JSON.parse(readFileSync(path.join(archiveDir, folderName('tenant::r-1'), name), 'utf8'));
  });
});

describe('a process that is killed while it archives', { timeout: 60_000 }, () => {
  it('loses no trajectory: the trial has it until the archive has', async () => {
    const { ended, archived, lost } = await killArchiving({ kills: 3, seed: 7 });
    assert.deepEqual(lost, []);
    assert.ok(ended >= 3);
    assert.ok(archived <= ended);
  });
});

describe('the trials that stay', () => {
  it('go when retention forgets their rollouts, but not while they are in use', async () => {
    const resolveAgent = () => Promise.resolve(leaving((dir) => put(dir, '{')));
    await using bench = await nativeBench({ resolveAgent, files: answerTask });
    const request = requestFor(bench.taskDir);
    const execution = bench.backend.execute(request, new HeardHooks());
    await execution.result;
    const trials = path.join(bench.dataDir, 'trials');
    await bench.backend.forget([request.id]);
    assert.equal(readdirSync(trials).length, 1, 'it is not released yet');
    await execution.release();
    assert.deepEqual(readdirSync(trials), [], 'it was forgotten while it was in use');
    const second = bench.backend.execute(request, new HeardHooks());
    await second.result;
    await second.release();
    assert.equal(readdirSync(trials).length, 1);
    await bench.backend.forget(['another', request.id]);
    assert.deepEqual(readdirSync(trials), []);
  });
});
