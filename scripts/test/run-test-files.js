import { join } from 'node:path';
import { run } from 'node:test';
import { repositoryDir } from '../setup/repository.js';
import { Reporter } from './reporter.js';

/** No file may hold up the run for longer. */
const fileMs = 10 * 60_000;

/**
 * Runs test files, each in a process of its own, and reports as they end.
 *
 * @param {import('./select-test-files.js').TestGroup} group
 * @param {{ readonly isVerbose: boolean }} options
 * @returns {Promise<import('./tally.js').Tally>}
 */
export async function runTestFiles(group, options) {
  const reporter = new Reporter({ ...options, print: (line) => console.log(line) });
  const events = run({
    files: group.files.map((file) => join(repositoryDir, file)),
    cwd: repositoryDir,
    concurrency: group.concurrency,
    timeout: fileMs,
    // A failed test may leave a process or a server behind: that must not hold up the verdict.
    forceExit: true,
  });
  for await (const event of events) reporter.see(event);
  return reporter.finish();
}
