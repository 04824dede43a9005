/**
 * Turns the events of node:test into a report: every failure in full with what its file printed, every skipped test with its
 * reason, one line per file. A test is a leaf: suites are not counted.
 */
import { relative } from 'node:path';
import { inspect } from 'node:util';
import { repositoryDir } from '../setup/repository.js';
import { addTally, emptyTally, resultLine } from './tally.js';

const maxPrintedLines = 200;
const maxRepeatedLines = 40;

/**
 * @typedef {object} FileReport
 * @property {import('./tally.js').Tally} tally
 * @property {string[]} lines What the report says about its tests.
 * @property {string} output What the file printed itself.
 * @property {string[]} path Titles of the suites around the current test, by nesting.
 */

export class Reporter {
  /** @type {Map<string, FileReport>} */
  #files = new Map();
  #total = emptyTally;
  /** @type {string[]} */
  #failures = [];
  #options;

  /** @param {{ readonly isVerbose: boolean, readonly print: (line: string) => void }} options */
  constructor(options) {
    this.#options = options;
  }

  /** @param {import('node:test/reporters').TestEvent} event */
  see(event) {
    if (event.type === 'test:start') this.#remember(event.data);
    else if (event.type === 'test:pass') this.#passed(event.data);
    else if (event.type === 'test:fail') this.#failed(event.data);
    else if (event.type === 'test:stdout' || event.type === 'test:stderr')
      this.#printed(event.data);
    else if (event.type === 'test:summary' && event.data.file) {
      this.#ended(event.data.file, event.data.duration_ms);
    }
  }

  /** Reports files that never said they ended. @returns {import('./tally.js').Tally} Of all files. */
  finish() {
    for (const file of this.#files.keys()) this.#ended(file, 0);
    return this.#total;
  }

  /** What failed, by file, to be said again at the end: of a long report often only the end is kept. @returns {readonly string[]} */
  get failures() {
    return this.#failures;
  }

  /** @param {string | undefined} file */
  #report(file) {
    const key = file ?? '';
    let report = this.#files.get(key);
    if (!report) {
      report = { tally: emptyTally, lines: [], output: '', path: [] };
      this.#files.set(key, report);
    }
    return report;
  }

  /** @param {{ file?: string, name: string, nesting: number }} test */
  #remember(test) {
    this.#report(test.file).path[test.nesting] = test.name;
  }

  /** @param {{ file?: string, name: string, nesting: number }} test */
  #title(test) {
    const outer = this.#report(test.file).path.slice(0, test.nesting);
    return [...outer, test.name].join(' › ');
  }

  /** @param {import('node:test').EventData.TestPass} test */
  #passed(test) {
    if (test.details.type === 'suite' || isWholeFile(test)) return;
    const report = this.#report(test.file);
    const reason = test.skip ?? test.todo;
    if (reason !== undefined) {
      report.tally = addTally(report.tally, { passed: 0, failed: 0, skipped: 1 });
      const why = typeof reason === 'string' && reason !== '' ? reason : 'no reason given';
      report.lines.push(`  skipped: ${this.#title(test)} (${why})`);
      return;
    }
    report.tally = addTally(report.tally, { passed: 1, failed: 0, skipped: 0 });
    if (this.#options.isVerbose) {
      report.lines.push(`  ✔ ${this.#title(test)} (${Math.round(test.details.duration_ms)} ms)`);
    }
  }

  /** @param {import('node:test').EventData.TestFail} test */
  #failed(test) {
    const error = /** @type {Error & { failureType?: string, cause?: unknown }} */ (
      test.details.error
    );
    // A suite or file fails because a test in it did: that one is counted.
    if (error.failureType === 'subtestsFailed') return;
    const report = this.#report(test.file);
    if (isWholeFile(test) && report.tally.failed > 0) return;
    report.tally = addTally(report.tally, { passed: 0, failed: 1, skipped: 0 });
    if (error.failureType === 'cancelledByParent') {
      report.lines.push(`  ✖ ${this.#title(test)} (not run: what is around it failed)`);
      return;
    }
    report.lines.push(`  ✖ ${this.#title(test)} (${Math.round(test.details.duration_ms)} ms)`);
    report.lines.push(describe(error.cause ?? error).replace(/^/gm, '      '));
  }

  /** @param {{ file?: string, message: string }} piece */
  #printed(piece) {
    this.#report(piece.file).output += piece.message;
  }

  /** @param {string} file @param {number} durationMs */
  #ended(file, durationMs) {
    const report = this.#files.get(file);
    this.#files.delete(file);
    if (!report || file === '') return;
    if (report.tally.passed + report.tally.failed + report.tally.skipped === 0) {
      report.tally = { ...emptyTally, failed: 1 };
      report.lines.push('  ✖ it holds no test');
    }
    const { tally } = report;
    this.#total = addTally(this.#total, tally);
    const line = resultLine(relative(repositoryDir, file), tally, durationMs);
    if (tally.failed > 0) this.#failures.push(line, ...report.lines.slice(0, maxRepeatedLines));
    this.#options.print(line);
    for (const detail of report.lines) this.#options.print(detail);
    if (tally.failed > 0 && report.output.trim() !== '') {
      this.#options.print('  it printed:');
      const lines = report.output.trimEnd().split('\n').slice(-maxPrintedLines);
      this.#options.print(lines.map((line) => `      ${line}`).join('\n'));
    }
  }
}

/** The test that stands for a whole file, named by its path. @param {{ file?: string, name: string, nesting: number }} test */
function isWholeFile(test) {
  return test.nesting === 0 && test.file !== undefined && test.file.endsWith(test.name);
}

/** Assertions already say in their message what they compared. @param {unknown} error */
function describe(error) {
  const isAssertion = error instanceof Error && Reflect.get(error, 'code') === 'ERR_ASSERTION';
  return isAssertion && error.stack ? error.stack : inspect(error, { depth: 6 });
}
