/** The command line as its users see it: exit codes, streams, documents, signals, resuming. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';
import { plainTask, type FolderFiles } from '../fakes/task-folder.ts';
import { repositoryDir, startSlipway } from '../support/slipway-cli.ts';

let root = '';
before(async () => {
  root = await mkdtemp(path.join(os.tmpdir(), 'slipway-cli-'));
});
after(() => rm(root, { recursive: true, force: true }));

function slipway(...argv: readonly string[]): ReturnType<typeof startSlipway> {
  return startSlipway(argv, { stateDir: path.join(root, 'state'), cwd: root });
}

async function run(
  ...argv: readonly string[]
): Promise<{ exitCode: number | null; stdout: string; stderr: string }> {
  return await slipway(...argv).ended;
}

async function writeTask(name: string, files: FolderFiles): Promise<string> {
  for (const [relative, content] of Object.entries(files)) {
    const file = path.join(root, name, relative);
    await mkdir(path.dirname(file), { recursive: true });
    await writeFile(file, content as string);
  }
  return path.join(root, name);
}

describe('what needs no sandbox', { timeout: 120_000 }, () => {
  it('--version prints the version of the package', async () => {
    const manifest = await readFile(path.join(repositoryDir, 'package.json'), 'utf8');
    const { version } = JSON.parse(manifest) as { version: string };
    assert.deepEqual(await run('--version'), { exitCode: 0, stdout: `${version}\n`, stderr: '' });
  });

  it('help lists the commands and exits 0', async () => {
    const { exitCode, stdout } = await run('--help');
    assert.equal(exitCode, 0);
    for (const name of ['run', 'jobs|job', 'trials|trial', 'task|tasks', 'cleanup'])
      assert.ok(stdout.includes(name), name);
  });

  it(
    'an old Node is told so in one sentence',
    { skip: oldNode() === null ? 'no older Node on this machine' : false },
    () => {
      assert.throws(
        () =>
          execFileSync(oldNode() ?? '', [path.join(repositoryDir, 'bin/slipway.js'), '--version'], {
            stdio: 'pipe',
          }),
        (error: Error & { status: number; stderr: Buffer }) =>
          error.status === 1 &&
          /^slipway needs Node\.js 24 or newer, and this is v\d+/.test(error.stderr.toString()),
      );
    },
  );

  it('--print-config prints what differs from the defaults and creates nothing', async () => {
    await writeFile(
      path.join(root, 'job.yaml'),
      'n_attempts: 2\nretry: {exclude_exceptions: [A]}\n',
    );
    const { exitCode, stdout } = await run(
      'run',
      '-c',
      'job.yaml',
      '-d',
      'x@1',
      '-n',
      '2',
      '--print-config',
    );
    assert.equal(exitCode, 0);
    assert.deepEqual(JSON.parse(stdout), {
      n_attempts: 2,
      n_concurrent_trials: 2,
      retry: { exclude_exceptions: ['A'] },
      environment: { import_path: 'slipway:local' },
      agents: [{ name: 'oracle' }],
      datasets: [{ name: 'x', version: '1' }],
    });
    assert.ok(!existsSync(path.join(root, 'jobs')));
  });

  it('a printed configuration is a job file that gives the same configuration', async () => {
    const argv = ['-p', 'somewhere', '-a', 'nop', '--ae', 'A=1', '--override-cpus', '2', '-k', '3'];
    const { stdout } = await run('run', ...argv, '--print-config');
    await writeFile(path.join(root, 'printed.json'), stdout);
    assert.equal((await run('run', '-c', 'printed.json', '--print-config')).stdout, stdout);
  });

  it('secrets of flags are masked in a printed configuration', async () => {
    const { stdout } = await run(
      'run',
      '-d',
      'x',
      '--ae',
      'API_KEY=sk-123456789',
      '--print-config',
    );
    assert.ok(!stdout.includes('sk-123456789'));
    assert.ok(stdout.includes('sk-1****789'));
  });

  it('a new task passes its check; a broken one does not', async () => {
    assert.equal((await run('task', 'init', 'org/fresh', '-o', 'fresh')).exitCode, 0);
    assert.equal((await run('task', 'check', 'fresh')).exitCode, 0);
    await writeTask('check/broken', { ...plainTask, 'task.toml': '[environment]\ncpus = "many"' });
    const { exitCode, stdout } = await run('task', 'check', 'check', '--json');
    assert.equal(exitCode, 1);
    const { tasks } = JSON.parse(stdout) as {
      tasks: { findings: { code: string; field: string }[] }[];
    };
    assert.deepEqual(tasks[0]?.findings.map(({ code, field }) => [code, field])[0], [
      'TASK_CONFIG_INVALID',
      'environment.cpus',
    ]);
  });

  it('cleaning up a fresh state folder removes nothing', async () => {
    const { exitCode, stdout } = await run('cleanup', '--json');
    assert.equal(exitCode, 0);
    assert.deepEqual((JSON.parse(stdout) as { removed: unknown[] }).removed, []);
  });
});

function oldNode(): string | null {
  for (const candidate of ['/usr/bin/node', '/usr/local/bin/node'])
    try {
      const version = execFileSync(candidate, ['--version'], { stdio: 'pipe', timeout: 10_000 });
      if (Number(version.toString().slice(1).split('.')[0]) < 24) return candidate;
    } catch {
      // not there
    }
  return null;
}

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

const slow: FolderFiles = { ...plainTask, 'solution/solve.sh': '#!/bin/bash\nsleep 300\n' };

interface Document {
  readonly job: { readonly dir: string };
  readonly status: string;
  readonly exit_code: number;
  readonly counts: Readonly<Record<string, number>>;
  readonly trials: readonly {
    readonly trial_name: string;
    readonly rewards: unknown;
    readonly failure: { code: string } | null;
  }[];
}

describe('runs in the local environment', { skip, timeout: 300_000 }, () => {
  before(async () => {
    await writeTask('few/one', plainTask);
    await writeTask('few/two', {
      ...plainTask,
      'tests/test.sh': 'echo 0 > /logs/verifier/reward.txt\n',
    });
    await writeTask('slow/a', slow);
  });

  it('tables go to standard output, progress to standard error, and a reward of 0 is no error', async () => {
    const { exitCode, stdout, stderr } = await run('run', '-p', 'few', '--job-name', 'plain');
    assert.equal(exitCode, 0);
    assert.match(stdout, /^few • oracle\ntask +trial +reward +result +image +boot/);
    assert.match(stdout, /\nmean 0\.5 {2}over 2 trials\n/);
    assert.match(stdout, /\nresults: .*jobs\/plain\n$/);
    assert.match(stderr, /^2 trials\n1\/2 \w+__\w{7} \([\d.]+ m?s\): reward [01]\n/);
  });

  it('--json prints one document with these keys and nothing else', async () => {
    const { stdout, stderr } = await run('job', 'start', '-p', 'few/one', '--json', '-k', '2');
    const document = JSON.parse(stdout) as Document;
    assert.deepEqual(Object.keys(document), [
      ...['schema_version', 'job', 'environment', 'status', 'exit_code', 'duration_ms'],
      ...['counts', 'evals', 'trials'],
    ]);
    assert.deepEqual(document.counts, {
      ...{ total: 2, completed: 2, errored: 0, cancelled: 0, not_started: 0, retries: 0 },
    });
    assert.deepEqual(
      document.trials.map(({ rewards }) => rewards),
      [{ reward: 1 }, { reward: 1 }],
    );
    assert.equal(stderr, '');
  });

  it('a finished job of the same name runs nothing again and counts each trial once', async () => {
    const argv = ['run', '-p', 'few', '--job-name', 'twice', '-k', '2', '--json'];
    const first = JSON.parse((await run(...argv)).stdout) as Document;
    await mkdir(path.join(first.job.dir, 'mine'));
    const again = JSON.parse((await run(...argv)).stdout) as Document;
    const names = ({ trials }: Document): string[] =>
      trials.map(({ trial_name }) => trial_name).sort();
    assert.deepEqual(names(again), names(first));
    assert.equal(again.counts['total'], 4);
    assert.ok(existsSync(path.join(first.job.dir, 'mine')));
  });

  it('a changed task makes another job of it', async () => {
    const task = await writeTask('changing/one', plainTask);
    const argv = ['run', '-p', 'changing', '--job-name', 'changing'];
    assert.equal((await run(...argv)).exitCode, 0);
    await writeFile(path.join(task, 'instruction.md'), 'Do something else.\n');
    const { exitCode, stderr } = await run(...argv);
    assert.equal(exitCode, 2);
    assert.match(stderr, /^JOB_CONFLICT/);
  });

  it('SIGINT cancels with receipts and exit code 130, and the job is resumed from there', async () => {
    const started = slipway('run', '-p', 'slow', '-k', '3', '-n', '1', '--job-name', 'cut');
    const job = path.join(root, 'jobs', 'cut');
    await untilSolving(job);
    started.child.kill('SIGINT');
    const { exitCode, stdout, stderr } = await started.ended;
    assert.equal(exitCode, 130);
    assert.match(stderr, /cancelled, \d+ process(?:es)? killed, everything gone/);
    assert.match(stdout, /2 trials not started: slipway jobs resume -p/);

    await writeFile(path.join(root, 'slow/a/solution/solve.sh'), '#!/bin/bash\ntrue\n');
    const changed = await run('jobs', 'resume', '-p', job);
    assert.match(changed.stderr, /^(?:runs again: .*\n)?JOB_CONFLICT/);
    await writeFile(
      path.join(root, 'slow/a/solution/solve.sh'),
      slow['solution/solve.sh'] as string,
    );
    const resumed = slipway('jobs', 'resume', '-p', job, '--json');
    await untilSolving(job);
    resumed.child.kill('SIGTERM');
    const document = JSON.parse((await resumed.ended).stdout) as Document;
    assert.equal(document.status, 'interrupted');
    assert.equal(document.counts['total'], 3);
    assert.equal(document.exit_code, 130);
  });

  it('a second signal ends the process at once, and the next start removes what was left', async () => {
    const started = slipway('run', '-p', 'slow', '--job-name', 'forced', '-q');
    await untilSolving(path.join(root, 'jobs', 'forced'));
    started.child.kill('SIGINT');
    started.child.kill('SIGTERM');
    assert.equal((await started.ended).exitCode, 130);
    await run('run', '-p', 'few/one', '-q');
    const left = await readdir(path.join(root, 'state', 'sandboxes')).catch(() => []);
    assert.deepEqual(left, []);
  });

  it('two runs that start in the same second get folders of their own', async () => {
    const both = await Promise.all(
      [0, 1].map(() => run('run', '-p', 'few/one', '--json', '-o', 'same')),
    );
    const dirs = both.map(({ stdout }) => (JSON.parse(stdout) as Document).job.dir);
    assert.equal(new Set(dirs).size, 2);
  });

  it('while a job runs, the same job is refused', async () => {
    const started = slipway('run', '-p', 'slow', '--job-name', 'busy');
    await untilSolving(path.join(root, 'jobs', 'busy'));
    const { exitCode, stderr } = await run('run', '-p', 'slow', '--job-name', 'busy');
    assert.equal(exitCode, 2);
    assert.match(stderr, /^JOB_CONFLICT \[job_name\]: another process is running/);
    started.child.kill('SIGINT');
    await started.ended;
  });

  it('a failing trial is tried again when its type is included, and counted', async () => {
    await writeTask('sick/one', {
      ...plainTask,
      'task.toml':
        '[environment.healthcheck]\ncommand = "false"\ninterval_sec = 0.1\ntimeout_sec = 5.0\nstart_period_sec = 0.0\nretries = 1',
    });
    const { stdout } = await run(
      'run',
      '-p',
      'sick',
      '-r',
      '1',
      '--retry-include',
      'HealthcheckError',
      '--json',
    );
    const document = JSON.parse(stdout) as Document;
    assert.equal(document.counts['retries'], 1);
    assert.deepEqual(
      document.trials.map(({ failure }) => failure?.code),
      ['HEALTHCHECK_FAILED'],
    );
    assert.equal(document.exit_code, 1);
  });

  it('an infrastructure failure is told apart and enters no average unless asked', async () => {
    await writeTask('mixed/good', plainTask);
    await writeTask('mixed/bad', { ...plainTask, 'tests/test.sh': 'true\n' });
    const { stdout } = await run('run', '-p', 'mixed', '--job-name', 'mixed');
    assert.match(stdout, /\nmean 1 {2}over 1 trial; 1 without a verdict not counted\n/);
    const asked = await run(
      'run',
      '-p',
      'mixed',
      '--job-name',
      'mixed',
      '--count-failures-as-zero',
    );
    assert.match(asked.stdout, /\nmean 0\.5 {2}over all 2 trials, those without a verdict as 0\n/);
  });

  it('turns and tokens are shown where an agent reported them', async () => {
    const dir = path.join(root, 'jobs/plain');
    const [name = ''] = (await readdir(dir)).filter((entry) => entry.includes('__'));
    const result = JSON.parse(
      await readFile(path.join(dir, name, 'result.json'), 'utf8'),
    ) as object;
    const copy = path.join(root, 'reported');
    await mkdir(copy);
    for (const file of ['config.json', 'lock.json'])
      await writeFile(path.join(copy, file), await readFile(path.join(dir, name, file)));
    await writeFile(
      path.join(copy, 'result.json'),
      JSON.stringify({
        ...result,
        agent_result: {
          ...{ n_input_tokens: 1200, n_cache_tokens: 900, n_output_tokens: 34 },
          metadata: { n_episodes: 5 },
        },
      }),
    );
    const { stdout } = await run('trials', 'show', 'reported');
    assert.match(stdout, /^5 turns, 1200 tokens in, 900 of them cached, 34 tokens out$/m);
  });

  it('trials are listed and shown', async () => {
    const listed = await run('trials', 'ls', 'jobs/plain');
    assert.match(listed.stdout, /one__\w{7} +one +oracle +reward 1/);
    const name = (await readdir(path.join(root, 'jobs/plain'))).find((entry) =>
      entry.startsWith('one__'),
    );
    const shown = await run('trial', 'show', `jobs/plain/${name ?? ''}`);
    assert.match(shown.stdout, /task one, agent oracle\)\nreward 1\n/);
    assert.match(shown.stdout, /\nverifier\/reward\.txt\n/);
  });

  it('a failed trial is listed by its code and shown with what stands behind it', async () => {
    const job = path.join(root, 'jobs/mixed');
    const listed = await run('trials', 'ls', 'jobs/mixed');
    const [, name, code] = /^(\S+__\w{7}) +\S+ +oracle +([A-Z_]+) /m.exec(listed.stdout) ?? [];
    assert.ok(name !== undefined && code !== undefined, listed.stdout);
    const file = path.join(job, name, 'result.json');
    const result = JSON.parse(await readFile(file, 'utf8')) as {
      slipway: { failure: { detail: string | null } };
    };
    result.slipway.failure.detail = 'STEP 1\nit broke';
    await writeFile(file, JSON.stringify(result));
    const shown = await run('trials', 'show', path.join('jobs/mixed', name));
    assert.match(shown.stdout, new RegExp(`\\n${code}.*\\n\\n {2}STEP 1\\n {2}it broke\\n`));
  });

  it('grading again keeps the agent and runs only the separate verifier', async () => {
    const task = path.join(repositoryDir, 'tasks', 'separate-verifier');
    assert.equal((await run('run', '-p', task, '--job-name', 'graded')).exitCode, 0);
    const { stdout } = await run(
      'trials',
      'regrade',
      'jobs/graded',
      '--job-name',
      'again',
      '--json',
    );
    const [trial] = (JSON.parse(stdout) as Document).trials;
    assert.deepEqual(trial?.rewards, { reward: 1 });
    const result = JSON.parse(
      await readFile(path.join(root, 'jobs/again', trial.trial_name, 'result.json'), 'utf8'),
    ) as { agent_info: { name: string }; agent_execution: unknown };
    assert.deepEqual([result.agent_info.name, result.agent_execution], ['oracle', null]);
    const refused = await run('trials', 'regrade', 'jobs/plain', '--json');
    const codes = (JSON.parse(refused.stdout) as Document).trials.map(
      ({ failure }) => failure?.code,
    );
    assert.deepEqual(new Set(codes), new Set(['REGRADE_IMPOSSIBLE']));
  });

  it('two jobs are compared pair by pair', async () => {
    assert.equal((await run('run', '-p', 'few', '-a', 'nop', '--job-name', 'nop')).exitCode, 0);
    const { stdout } = await run('jobs', 'compare', 'jobs/plain', 'jobs/nop', '--json');
    const { pairs, difference, ties } = JSON.parse(stdout) as Record<string, number>;
    assert.deepEqual([pairs, difference, ties], [2, 0, 2]);
  });

  it('a trial configuration runs as a job of one', async () => {
    await writeFile(
      path.join(root, 'trial.yaml'),
      'task: {path: few/one}\nagent: {name: oracle}\nenvironment: {type: local}\n',
    );
    const { stdout } = await run(
      'trial',
      'start',
      '-c',
      'trial.yaml',
      '--trials-dir',
      'single',
      '--json',
    );
    assert.deepEqual(
      (JSON.parse(stdout) as Document).trials.map(({ rewards }) => rewards),
      [{ reward: 1 }],
    );
  });

  it(
    'a full disk is DISK_FULL and stops no sibling',
    { skip: process.getuid?.() === 0 ? false : 'mounting needs root' },
    async () => {
      const small = path.join(root, 'small');
      await mkdir(small);
      execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=1m', 'tmpfs', small]);
      try {
        await writeTask('filling/a-big', {
          ...plainTask,
          'tests/test.sh':
            'head -c 3000000 /dev/zero > /logs/verifier/big; echo 1 > /logs/verifier/reward.txt\n',
        });
        await writeTask('filling/b-small', plainTask);
        const { stdout, stderr } = await run(
          'run',
          '-p',
          'filling',
          '-n',
          '1',
          '-o',
          small,
          '--job-name',
          'full',
          '--json',
        );
        const document = JSON.parse(stdout) as Document;
        const [big, little] = document.trials.toSorted((a, b) =>
          a.trial_name < b.trial_name ? -1 : 1,
        );
        assert.equal(big?.failure?.code, 'DISK_FULL', stderr);
        assert.equal(big.rewards, null);
        assert.equal(document.counts['completed'], 2);
        assert.ok(little);
      } finally {
        execFileSync('umount', [small]);
      }
    },
  );
});

/** Resolves when a trial of the job runs its agent. */
async function untilSolving(job: string): Promise<void> {
  for (let left = 600; left > 0; left -= 1) {
    for (const name of await readdir(job).catch(() => [])) {
      const log = await readFile(path.join(job, name, 'trial.log'), 'utf8').catch(() => '');
      const isOver = existsSync(path.join(job, name, 'result.json'));
      if (!isOver && log.includes('running agent')) return;
    }
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  assert.fail('no trial began to run its agent');
}
