import assert from 'node:assert/strict';
import { mkdir, readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { isRolloutError, RolloutError } from '../../../src/core/errors.ts';
import { never } from '../../../src/core/linked-abort.ts';
import { parseGitUrl } from '../../../src/tasks/references/git-url.ts';
import { Git } from '../../../src/tasks/references/git.ts';
import { GitRepository } from '../../fakes/git-repository.ts';
import { taskFiles } from '../../fakes/task-archive.ts';
import { taskEntry, Workbench } from './workbench.ts';

/** A process whose parent has not yet fetched its end counts as dead. */
async function isAlive(pid: number): Promise<boolean> {
  const status = await readFile(`/proc/${pid}/stat`, 'latin1').catch(() => null);
  return status !== null && !status.includes(') Z ');
}

async function pidIn(file: string): Promise<number> {
  for (;;) {
    const text = await readFile(file, 'utf8').catch(() => '');
    if (text.endsWith('\n')) return Number(text);
    await delay(10);
  }
}

/** A git that ignores SIGTERM and has a child that does, too. */
const stubborn = (pidFile: string): string =>
  `#!/bin/sh\ntrap '' TERM\nsh -c 'trap "" TERM; echo $$ > "${pidFile}"; sleep 60' &\nwait\nwait\nsleep 60\n`;

await test('cancelling ends git with all its children, however stubborn, and throws the reason', async () => {
  await using bench = await Workbench.make();
  const pidFile = join(bench.dir, 'pid');
  const executable = await bench.script('stubborn-git', stubborn(pidFile));
  const git = new Git({ executable, variables: process.env });
  const stop = new AbortController();
  const remote = parseGitUrl('https://example.org/r', 'git_url');
  const work = git.run(['clone'], { remote, signal: stop.signal });
  const pid = await pidIn(pidFile);
  const reason = new Error('stopped');
  stop.abort(reason);
  await assert.rejects(work, (error) => error === reason);
  await delay(50);
  assert.equal(await isAlive(pid), false);
});

await test('a git that takes too long is ended and fails', async () => {
  await using bench = await Workbench.make();
  const pidFile = join(bench.dir, 'pid');
  const executable = await bench.script('stubborn-git', stubborn(pidFile));
  const git = new Git({ executable, variables: process.env, timeoutMs: 200 });
  const remote = parseGitUrl('https://example.org/r', 'git_url');
  await assert.rejects(
    git.run(['clone'], { remote, signal: never }),
    (error) =>
      isRolloutError(error, 'GIT_FAILED') && error.message.includes('took longer than 200 ms'),
  );
  const pid = await pidIn(pidFile);
  await delay(50);
  assert.equal(await isAlive(pid), false);
});

await test('without git the error says to install it', async () => {
  const git = new Git({ executable: '/nonexistent/git', variables: process.env });
  const remote = parseGitUrl('https://example.org/r', 'git_url');
  await assert.rejects(
    git.run(['clone'], { remote, signal: never }),
    (error) =>
      isRolloutError(error, 'GIT_FAILED') &&
      !error.retryable &&
      error.message.includes('not installed'),
  );
});

await test('credentials reach the server that they are for, and neither arguments nor errors', async () => {
  await using bench = await Workbench.make();
  const authorizations: (string | undefined)[] = [];
  const server = createServer((request, response) => {
    authorizations.push(request.headers.authorization);
    const status = request.headers.authorization === undefined ? 401 : 500;
    response.writeHead(status, { 'www-authenticate': 'Basic realm="test"' });
    response.end(`no: ${request.headers.authorization ?? ''}`);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  try {
    const calls = join(bench.dir, 'calls');
    const gitExecutable = await bench.script(
      'git-recorder',
      `#!/bin/sh\necho "$*" >> '${calls}'\nexec git "$@"\n`,
    );
    await using recorded = await Workbench.make({ gitExecutable });
    const { port } = server.address() as AddressInfo;
    const git_url = `http://user7:hunter%212@127.0.0.1:${port}/o/r.git?token=tok3n`;
    const [failure] = await recorded.resolver.settleTasks([taskEntry({ git_url, path: 't' })], {
      signal: never,
    });
    assert.ok(failure instanceof RolloutError);
    assert.equal(failure.code, 'GIT_FAILED');
    const expected = `Basic ${Buffer.from('user7:hunter!2').toString('base64')}`;
    assert.ok(authorizations.includes(expected), 'the server was given them');
    const shown = [failure.describe(), failure.detail, failure.stack, ...recorded.log].join('\n');
    assert.doesNotMatch(shown, /user7|hunter|tok3n|127\.0\.0\.1:\d+\/o/);
    assert.doesNotMatch(await readFile(calls, 'utf8'), /user7|hunter/);
  } finally {
    server.closeAllConnections();
    server.close();
  }
});

await test('a server that asks for a password gets none and git does not wait for one', async () => {
  const server = createServer((_, response) =>
    response.writeHead(401, { 'www-authenticate': 'Basic realm="test"' }).end(),
  );
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  try {
    await using bench = await Workbench.make();
    const { port } = server.address() as AddressInfo;
    const entry = taskEntry({ git_url: `http://127.0.0.1:${port}/r`, path: 't' });
    const [failure] = await bench.resolver.settleTasks([entry], { signal: never });
    assert.ok(isRolloutError(failure, 'GIT_FAILED'));
  } finally {
    server.closeAllConnections();
    server.close();
  }
});

await test('hooks and submodules of a repository and the settings of a surrounding git do not take part', async () => {
  await using repository = await GitRepository.make();
  await using other = await GitRepository.make();
  await using bench = await Workbench.make();
  const mark = join(bench.dir, 'ran');
  await other.commit(taskFiles('other'));
  await repository.git(
    '-c',
    'protocol.file.allow=always',
    'submodule',
    'add',
    '-q',
    other.url,
    'inner',
  );
  await repository.commit({ 't/task.toml': '', 'outer.txt': 'x' });
  const templates = join(bench.dir, 'templates');
  await mkdir(join(templates, 'hooks'), { recursive: true });
  await bench.script('templates/hooks/post-checkout', `#!/bin/sh\ntouch '${mark}'\n`);
  const git = new Git({
    variables: {
      ...process.env,
      GIT_DIR: '/nonexistent',
      GIT_TEMPLATE_DIR: templates,
    },
  });
  const remote = parseGitUrl(repository.url, 'git_url');
  const clone = join(bench.dir, 'clone');
  await git.run(['clone', '-q', '--', remote.url, clone], { remote, signal: never });
  await assert.rejects(readFile(mark), { code: 'ENOENT' });
  await assert.rejects(readFile(join(clone, 'inner/task.toml')), { code: 'ENOENT' });
  assert.equal(await readFile(join(clone, 'outer.txt'), 'utf8'), 'x');
});
