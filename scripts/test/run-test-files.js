import { join } from 'node:path';
import { run } from 'node:test';
import { repositoryDir } from '../setup/repository.js';
import { Reporter } from './reporter.js';

/** No file may hold up the run for longer: it is ended then, and counts as failed. */
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
  const waiting = [...group.files];
  const work = async () => {
    for (let file = waiting.shift(); file !== undefined; file = waiting.shift()) {
      await runOne(file, reporter);
    }
  };
  await Promise.all(Array.from({ length: group.concurrency }, work));
  return reporter.finish();
}

/**
 * A failed test may leave a process or a server open, and its file then never ends by itself; node:test's own timeout does not end it.
 *
 * @param {string} file
 * @param {Reporter} reporter
 */
async function runOne(file, reporter) {
  const limit = new AbortController();
  const timer = setTimeout(() => limit.abort(), fileMs);
  try {
    const path = join(repositoryDir, file);
    const events = run({ files: [path], cwd: repositoryDir, signal: limit.signal });
    for await (const event of events) reporter.see(event);
  } finally {
    clearTimeout(timer);
  }
}
