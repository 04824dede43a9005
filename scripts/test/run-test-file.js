import { join } from 'node:path';
import { run } from 'node:test';
import { repositoryDir } from '../setup/repository.js';

/** No file may hold up the run for longer: it is ended then, and counts as failed. */
const fileMs = 10 * 60_000;

/**
 * Runs a test file in a process of its own, and reports as it goes.
 *
 * A failed test may leave a process or a server open, and its file then never ends by itself; node:test's own timeout does not end it.
 *
 * @param {string} file
 * @param {import('./reporter.js').Reporter} reporter
 */
export async function runTestFile(file, reporter) {
  const limit = new AbortController();
  const timer = setTimeout(() => limit.abort(), fileMs);
  try {
    const path = join(repositoryDir, file);
    const events = run({ files: [path], cwd: repositoryDir, signal: limit.signal });
    for await (const event of events) reporter.see(ofFile(event, path));
  } finally {
    clearTimeout(timer);
  }
}

/**
 * A test that another file registers, as a suite shared by several adapters does, belongs to the file that was run.
 *
 * @param {import('node:test/reporters').TestEvent} event
 * @param {string} file
 * @returns {import('node:test/reporters').TestEvent}
 */
function ofFile(event, file) {
  if (!event.data || !('file' in event.data) || event.data.file === undefined) return event;
  return /** @type {import('node:test/reporters').TestEvent} */ ({
    ...event,
    data: { ...event.data, file },
  });
}
