/** What an evaluation finds when it goes on: what its server had kept, and whether the tasks are those that it began with. */
import assert from 'node:assert/strict';
import { appendFile, mkdir, mkdtemp, readFile, rename, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';
import { initTask } from '../../../src/tasks/init-task.ts';
import { never } from '../../../src/core/linked-abort.ts';
import { Evaluation } from './evaluation.ts';

let root = '';
before(async () => {
  root = await mkdtemp(path.join(os.tmpdir(), 'slipway-resume-'));
});
after(() => rm(root, { recursive: true, force: true }));

/** As kill -9 leaves it between the ends of its rollouts and their keeping. */
async function forgetKept(evaluation: Evaluation): Promise<void> {
  const journal = await readFile(evaluation.results('events.jsonl'), 'utf8');
  const lines = journal.split('\n').filter((line) => !line.includes('"item:kept"'));
  await writeFile(evaluation.results('events.jsonl'), lines.join('\n'));
  for (const name of ['trajectories', 'artifacts', 'index.jsonl'])
    await rm(evaluation.results(name), { recursive: true, force: true });
}

describe('an evaluation whose process was killed before it had fetched what its server kept', () => {
  it('fetches it when it goes on, and runs nothing again', { timeout: 240_000 }, async () => {
    const rows = [{ reward: 1 }, { fail: 'VERIFIER_TIMEOUT' }];
    const evaluation = await Evaluation.of([root, 'kept'], rows);
    await evaluation.run('--yes');
    const keptBefore = (await evaluation.lines('events.jsonl')).filter(isKept);
    assert.equal(keptBefore.length, 2);
    const outcomeFile = evaluation.results('artifacts', 'row_1_run_0', 'outcome.json');
    const outcome = await readFile(outcomeFile, 'utf8');
    const index = await evaluation.lines('index.jsonl');
    await forgetKept(evaluation);

    const resumed = await evaluation.document('--yes');
    assert.deepEqual([resumed.resumed, resumed.metrics.pending], [2, 0]);
    assert.equal((await evaluation.endings()).length, 2);
    assert.equal(await readFile(outcomeFile, 'utf8'), outcome);
    const keptNow = (await evaluation.lines('events.jsonl')).filter(isKept);
    assert.deepEqual(keptNow.map(withoutTime), keptBefore.map(withoutTime).toSorted(byRow));
    const again = await evaluation.lines('index.jsonl');
    assert.deepEqual(again, index.map((line) => ({ ...line, resumed: true }))); // prettier-ignore
    assert.ok((await evaluation.lines('events.jsonl')).every(({ type }, at) => at === 0 || type !== 'run:started')); // prettier-ignore
  });

  it('says so once where the server had not written it yet', { timeout: 240_000 }, async () => {
    const evaluation = await Evaluation.of([root, 'bare'], [{ reward: 1 }, { reward: 0 }]);
    await evaluation.run('--yes');
    await forgetKept(evaluation);
    await rm(evaluation.results('server', 'archive'), { recursive: true });
    const { stderr, exitCode } = await evaluation.run('--yes');
    assert.match(stderr, /2 of the runs .*before their archive was written.*server\/trials/);
    assert.equal(exitCode, 0);
    assert.doesNotMatch((await evaluation.run('--yes')).stderr, /archive/);
  });
});

const isKept = ({ type }: Readonly<Record<string, unknown>>): boolean => type === 'item:kept';
const withoutTime = (event: Readonly<Record<string, unknown>>) => ({ ...event, at: null });
const byRow = (a: Readonly<Record<string, unknown>>, b: Readonly<Record<string, unknown>>) =>
  Number(a['row_index']) - Number(b['row_index']);

describe('an evaluation of tasks in folders', { timeout: 240_000 }, () => {
  /** Its model does not answer: everything is there but what would run. */
  async function begun(name: string): Promise<Evaluation> {
    const evaluation = await Evaluation.of([root, name], []);
    for (const task of ['first', 'second'])
      await initTask({ dir: path.join(evaluation.dir, 'tasks', task), name: task, signal: never });
    const rows = ['first', 'second', 'third'].map(
      (task) => `${JSON.stringify({ metadata: { harbor_task: `./tasks/${task}` } })}\n`,
    );
    await writeFile(path.join(evaluation.dir, 'rows.jsonl'), rows.join(''));
    await evaluation.configure(
      '[model]\nurl = "http://127.0.0.1:9/v1"',
      '[backend.native]\nagent = "oracle"',
    );
    assert.match((await evaluation.run('--yes')).stderr, /ENGINE_UNAVAILABLE/);
    return evaluation;
  }

  const goesOn = /ENGINE_UNAVAILABLE/;

  it('goes on with the same tasks, and with one that was not there before', async () => {
    const evaluation = await begun('same');
    const tasks = path.join(evaluation.dir, 'tasks');
    await mkdir(path.join(tasks, 'first', 'jobs'));
    await writeFile(path.join(tasks, 'first', 'jobs', 'notes.txt'), 'no part of a task');
    assert.match((await evaluation.run('--yes')).stderr, goesOn);
    await initTask({ dir: path.join(tasks, 'third'), name: 'third', signal: never });
    assert.match((await evaluation.run('--yes')).stderr, goesOn);
    await appendFile(path.join(tasks, 'third', 'instruction.md'), 'More.\n');
    assert.match((await evaluation.run('--yes')).stderr, /content of tasks\/third —/);
  });

  it('does not go on with another content of a task, and names the folder', async () => {
    const evaluation = await begun('changed');
    const file = path.join(evaluation.dir, 'tasks/second/instruction.md');
    const text = await readFile(file, 'utf8');
    await appendFile(file, 'More.\n');
    const { stderr, exitCode } = await evaluation.run('--yes');
    assert.match(stderr, /JOB_CONFLICT \[tasks\]: .*changed: the content of tasks\/second — .*--fresh/); // prettier-ignore
    assert.equal(exitCode, 2);
    await writeFile(file, text);
    assert.match((await evaluation.run('--yes')).stderr, goesOn);
    await appendFile(file, 'More.\n');
    assert.match((await evaluation.run('--yes', '--fresh')).stderr, goesOn);
  });

  it('does not go on without a task that was there', async () => {
    const evaluation = await begun('gone');
    await rename(path.join(evaluation.dir, 'tasks/first'), path.join(evaluation.dir, 'away'));
    assert.match((await evaluation.run('--yes')).stderr, /changed: tasks\/first, which is gone —/);
  });

  it('does not go on with other requirements of its code', async () => {
    const evaluation = await begun('requirements');
    const file = path.join(evaluation.dir, 'requirements.txt');
    await writeFile(file, 'one==1\n');
    const harbor = 'tasks_dir = "tasks/first"\nagent = "oracle"\nrequirements = "requirements.txt"';
    await evaluation.configure(
      '[model]\nurl = "http://127.0.0.1:9/v1"',
      `[backend]\nkind = "harbor"\n[backend.harbor]\n${harbor}`,
    );
    assert.match((await evaluation.run('--yes', '--fresh')).stderr, goesOn);
    assert.match((await evaluation.run('--yes')).stderr, goesOn);
    await writeFile(file, 'one==2\n');
    assert.match(
      (await evaluation.run('--yes')).stderr,
      /JOB_CONFLICT \[tasks\]: .*changed: the content of backend\.harbor\.requirements —/,
    );
  });

  it('names their folders as the configuration sees them', async () => {
    const evaluation = await begun('moving');
    const manifest = JSON.parse(await readFile(evaluation.results('manifest.json'), 'utf8')) as {
      readonly tasks: Readonly<Record<string, string>>;
    };
    assert.deepEqual(Object.keys(manifest.tasks), ['tasks/first', 'tasks/second']);
  });
});
