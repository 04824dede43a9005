/** Bad input of every kind ends in the documented code with field and remedy; no stack trace, no invented number, and siblings finish. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';
import { plainTask } from '../fakes/task-folder.ts';
import { CommandLines } from '../support/command-lines.ts';
import { slipwayRun, startSlipway, type RunDocument } from '../support/slipway-cli.ts';
import { badTasks } from './bad-tasks.ts';

const stackTrace = /^\s+at .*(?:\(|file:|node:)/m;

const skip = ['runc', 'crun'].some((name) => {
  try {
    execFileSync(name, ['--version'], { stdio: 'ignore', timeout: 10_000 });
    return true;
  } catch {
    return false;
  }
})
  ? false
  : 'neither runc nor crun is installed';

let root = '';
before(async () => {
  root = await mkdtemp(path.join(os.tmpdir(), 'slipway-bad-'));
});
after(() => rm(root, { recursive: true, force: true }));

async function writeTask(name: string, files: typeof plainTask): Promise<void> {
  for (const [relative, content] of Object.entries(files)) {
    const file = path.join(root, 'tasks', name, relative);
    await mkdir(path.dirname(file), { recursive: true });
    await writeFile(file, content as string);
  }
}

describe('broken tasks beside good ones, in one job', { skip, timeout: 400_000 }, () => {
  const siblings = ['a-good-one', 'm-good-one', 'z-good-one'];
  let document: RunDocument | null = null;
  const trialOf = (name: string): RunDocument['trials'][number] =>
    document?.trials.find(
      ({ trial_name }) =>
        trial_name.replace(/__\w{7}$/, '') === name.slice(0, 32).replace(/[_-]+$/, ''),
    ) ?? assert.fail(`no trial of ${name}`);

  before(async () => {
    for (const name of siblings) await writeTask(name, plainTask);
    for (const [name, { files }] of Object.entries(badTasks)) await writeTask(name, files);
    document = await slipwayRun(
      [
        ...['--path', path.join(root, 'tasks'), '--env', 'local', '--n-concurrent', '4'],
        ...['--jobs-dir', path.join(root, 'jobs'), '--job-name', 'bad'],
      ],
      { stateDir: path.join(root, 'state') },
    );
  });

  it('every trial has ended and the exit code says that some ended in errors', () => {
    const count = Object.keys(badTasks).length + siblings.length;
    assert.ok(count >= 33);
    assert.equal(document?.counts.completed, count);
    assert.equal(document.exit_code, 1);
  });

  for (const name of siblings)
    it(`the sibling ${name} has its reward`, () => {
      assert.deepEqual([trialOf(name).rewards, trialOf(name).failure], [{ reward: 1 }, null]);
    });

  for (const [name, { code, field, rewards = null }] of Object.entries(badTasks))
    it(`${name} ends with ${code}`, async () => {
      const trial = trialOf(name);
      assert.equal(trial.failure?.code, code, trial.failure?.message);
      assert.deepEqual(trial.rewards, rewards);
      assert.ok(trial.failure.message.length > 0);
      assert.ok(trial.failure.remedy, `${code} has no remedy: ${trial.failure.message}`);
      if (field !== null)
        assert.ok(
          trial.failure.field?.includes(field),
          `field is ${trial.failure.field ?? 'null'}`,
        );
      const dir = path.join(root, 'jobs', 'bad', trial.trial_name);
      const text = await readFile(path.join(dir, 'result.json'), 'utf8');
      const result = JSON.parse(text) as {
        verifier_result: unknown;
        slipway: { outcome: { verdict: unknown; trainable: boolean } };
      };
      assert.deepEqual(result.verifier_result, rewards && { rewards });
      assert.deepEqual(result.slipway.outcome.verdict, rewards && { rewards });
      assert.ok(!stackTrace.test(text));
      assert.ok(
        !stackTrace.test(await readFile(path.join(dir, 'exception.txt'), 'utf8').catch(() => '')),
      );
    });

  it('no sandbox is left', async () => {
    const left = await readdir(path.join(root, 'state', 'sandboxes')).catch(() => []);
    assert.deepEqual(left, []);
  });
});

interface BadCommand {
  readonly argv: readonly string[];
  readonly exitCode: number;
  /** What standard error begins with. */
  readonly says: RegExp;
  readonly variables?: Readonly<Record<string, string>>;
  /** Runs as users run it: one for every way in which a command line ends. */
  readonly isProcess?: true;
}

const here = (name: string): string => path.join('{root}', name);

// prettier-ignore
const badCommands: Readonly<Record<string, BadCommand>> = {
  'an unknown flag': { argv: ['run', '--colour', 'red'], exitCode: 2, says: /unknown option '--colour'/, isProcess: true },
  'an unknown command': { argv: ['fly'], exitCode: 2, says: /unknown command 'fly'/ },
  'no attempts': { argv: ['run', '-k', '0'], exitCode: 2, says: /^CONFIG_INVALID \[--n-attempts\]: .* — Give a whole number of at least 1/ },
  'a multiplier that is no number': { argv: ['run', '--timeout-multiplier', 'much'], exitCode: 2, says: /^CONFIG_INVALID \[--timeout-multiplier\]/ },
  'a plugin': { argv: ['run', '--plugin', 'm:C'], exitCode: 2, says: /^CONFIG_INVALID \[--plugin\]: .*not supported/ },
  'a simulated user': { argv: ['run', '--user-agent', 'x'], exitCode: 2, says: /^CONFIG_INVALID \[--user-agent\]/ },
  'a hosted run': { argv: ['run', '--launch'], exitCode: 2, says: /^CONFIG_INVALID \[--launch\]/, isProcess: true },
  'an agent class without a module': { argv: ['run', '--agent-import-path', 'Class', '-p', here('tasks')], exitCode: 2, says: /^CONFIG_INVALID \[agents\[0\]\.import_path\]/ },
  'kwargs without =': { argv: ['run', '--ak', 'what'], exitCode: 2, says: /^CONFIG_INVALID \[--agent-kwarg\]: expected KEY=VALUE/ },
  'mounts that are no list': { argv: ['run', '--mounts', '{}'], exitCode: 2, says: /^CONFIG_INVALID \[--mounts\]/ },
  'a resource policy that does not exist': { argv: ['run', '--cpus', 'maybe', '-p', here('tasks')], exitCode: 2, says: /^CONFIG_INVALID \[environment.cpu_enforcement_policy\]/ },
  'tasks and datasets together': { argv: ['run', '-t', 'o/n', '-d', 'x'], exitCode: 2, says: /^CONFIG_INVALID \[--task\]/ },
  'a filter without a source': { argv: ['run', '-i', 'x*'], exitCode: 2, says: /^CONFIG_INVALID \[--include-task-name\]/ },
  'a job name with a slash': { argv: ['run', '--job-name', 'a/b', '-p', here('tasks')], exitCode: 2, says: /^CONFIG_INVALID \[job_name\]/ },
  'a job file that is not there': { argv: ['run', '-c', 'none.yaml'], exitCode: 2, says: /^CONFIG_INVALID \[--config\]: .*no such file/ },
  'a job file of another kind': { argv: ['run', '-c', here('job.ini')], exitCode: 2, says: /^CONFIG_INVALID \[--config\]: .*unknown kind/ },
  'a job file that is no YAML': { argv: ['run', '-c', here('broken.yaml')], exitCode: 2, says: /^CONFIG_INVALID \[--config\]/ },
  'a job file with a wrong field': { argv: ['run', '-c', here('wrong.yaml')], exitCode: 2, says: /^CONFIG_INVALID \[n_attempts\]/ },
  'a job file with a simulated user': { argv: ['run', '-c', here('user.yaml')], exitCode: 2, says: /^CONFIG_INVALID \[user_agent\]/ },
  'more agents than trials at once': { argv: ['run', '-p', here('tasks'), '--n-concurrent-agents', '9', '-n', '2'], exitCode: 2, says: /^CONFIG_INVALID \[agents\[0\].n_concurrent\]/ },
  'an env file with a line that assigns nothing': { argv: ['run', '--env-file', here('job.ini')], exitCode: 2, says: /^CONFIG_INVALID \[--env-file line 1\]/ },
  'MCP servers that are none': { argv: ['run', '--mcp-config', here('wrong.yaml')], exitCode: 2, says: /^CONFIG_INVALID \[--mcp-config\]/ },
  'an unknown environment': { argv: ['run', '-e', 'moon', '-p', here('tasks')], exitCode: 2, says: /^ENVIRONMENT_UNKNOWN .* — Use one of: local, docker/ },
  'an option that the environment does not have': { argv: ['run', '-e', 'local', '--ek', 'colour=red', '-p', here('tasks')], exitCode: 2, says: /^CONFIG_INVALID .*colour/s },
  'an unknown agent': { argv: ['run', '-a', 'nobody', '-p', here('tasks')], exitCode: 2, says: /^AGENT_UNKNOWN .* — Use one of:.*oracle/ },
  'an engine that does not answer': { argv: ['run', '-e', 'docker', '-p', here('tasks')], exitCode: 1, says: /^ENVIRONMENT_UNAVAILABLE/, variables: { DOCKER_HOST: 'unix:///nonexistent/docker.sock' }, isProcess: true },
  'no task at all': { argv: ['run'], exitCode: 2, says: /^DATASET_EMPTY \[--path\]/ },
  'a folder without tasks': { argv: ['run', '-p', here('jobs-empty')], exitCode: 2, says: /^DATASET_EMPTY \[path\]: no folder in .* — Name a task folder/ },
  'a filter that matches nothing': { argv: ['run', '-p', here('few'), '-i', 'zzz*'], exitCode: 2, says: /^DATASET_EMPTY/ },
  'a package without a registry': { argv: ['run', '-d', 'org/dataset'], exitCode: 2, says: /^REGISTRY_NOT_CONFIGURED .* — Set SLIPWAY_REGISTRY_URL/ },
  'a registry address that is none': { argv: ['run', '-d', 'org/dataset'], exitCode: 2, says: /^CONFIG_INVALID \[SLIPWAY_REGISTRY_URL\]/, variables: { SLIPWAY_REGISTRY_URL: 'ftp://x', SLIPWAY_REGISTRY_KEY: 'k' } },
  'a job folder that cannot be read': { argv: ['run', '-p', here('few'), '-o', here('jobs-broken'), '--job-name', 'j'], exitCode: 2, says: /^JOB_UNREADABLE/ },
  'another job of the same name': { argv: ['run', '-p', here('few'), '-o', here('jobs-other'), '--job-name', 'j'], exitCode: 2, says: /^JOB_CONFLICT \[\w+\]: .* — Give the job another --job-name/ },
  'resuming no job': { argv: ['jobs', 'resume', '-p', here('few')], exitCode: 2, says: /^JOB_UNREADABLE/ },
  'comparing no jobs': { argv: ['jobs', 'compare', here('few'), here('few')], exitCode: 2, says: /^JOB_UNREADABLE/ },
  'comparing with a seed that is none': { argv: ['jobs', 'compare', 'a', 'b', '--seed', 'x'], exitCode: 2, says: /^CONFIG_INVALID \[--seed\]/ },
  'listing the trials of tasks': { argv: ['trials', 'ls', here('few')], exitCode: 2, says: /^JOB_UNREADABLE/ },
  'showing no trial': { argv: ['trials', 'show', here('few')], exitCode: 2, says: /^JOB_UNREADABLE/ },
  'grading no trial again': { argv: ['trials', 'regrade', here('few')], exitCode: 2, says: /^JOB_UNREADABLE/ },
  'a trial file without a task': { argv: ['trial', 'start', '-c', here('wrong.yaml')], exitCode: 2, says: /^CONFIG_INVALID .*task/s },
  'a task name that is none': { argv: ['task', 'init', 'a b/c'], exitCode: 2, says: /^CONFIG_INVALID/ },
};

describe('commands that cannot be carried out', { timeout: 200_000 }, () => {
  let commandLines: CommandLines;
  before(async () => {
    commandLines = new CommandLines();
    const files: Record<string, string> = {
      'job.ini': 'x',
      'broken.yaml': 'a: [1',
      'wrong.yaml': 'n_attempts: many\ndatasets: [{path: few}]\n',
      'user.yaml': 'user_agent: {name: x}\ndatasets: [{path: few}]\n',
      'jobs-broken/j/config.json': '{',
      'jobs-other/j/config.json': '{"agents": [{"name": "nop"}], "n_attempts": 7}',
      'jobs-empty/readme.txt': 'no tasks',
      ...Object.fromEntries(
        Object.entries(plainTask).map(([name, text]) => [`few/one/${name}`, text as string]),
      ),
    };
    for (const [name, text] of Object.entries(files)) {
      await mkdir(path.dirname(path.join(root, name)), { recursive: true });
      await writeFile(path.join(root, name), text);
    }
    await mkdir(path.join(root, 'tasks'), { recursive: true });
  });

  after(() => commandLines[Symbol.asyncDispose]());

  for (const [title, bad] of Object.entries(badCommands))
    it(`${title}: exit ${bad.exitCode}, ${bad.says.source}`, async () => {
      const argv = bad.argv.map((part) => part.replace('{root}', root));
      const stateDir = path.join(root, 'state');
      const { variables = {} } = bad;
      const ended = bad.isProcess
        ? { held: [], ...(await startSlipway(argv, { stateDir, cwd: root, variables }).ended) }
        : await commandLines.run({
            ...{ argv, cwd: root, variables: { SLIPWAY_STATE_DIR: stateDir, ...variables } },
          });
      assert.match(ended.stderr.replace(/^error: /, ''), bad.says);
      assert.equal(ended.exitCode, bad.exitCode);
      assert.equal(ended.stdout, '');
      assert.ok(!stackTrace.test(ended.stderr), ended.stderr);
      assert.deepEqual(ended.held, []);
    });
});
