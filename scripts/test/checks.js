/** Checks of the sources that count as one test each, those that take long first. */
import { run } from '../setup/programs.js';
import { repositoryDir } from '../setup/repository.js';
import { resultLine } from './tally.js';

const checkMs = 10 * 60_000;

export const checks = [
  { name: 'lint', program: 'eslint', argv: ['.', '--max-warnings', '0'] },
  { name: 'format', program: 'prettier', argv: ['--check', '.'] },
  { name: 'types', program: 'tsc', argv: ['--noEmit'] },
  { name: 'script-types', program: 'tsc', argv: ['-p', 'scripts'] },
];

/** @param {(typeof checks)[number]} check @returns {Promise<import('./tally.js').Tally>} */
export async function runCheck(check) {
  const startedAt = Date.now();
  const result = await run(check.program, check.argv, {
    cwd: repositoryDir,
    timeoutMs: checkMs,
    env: { NO_COLOR: '1' },
  });
  const isGood = result.code === 0;
  if (!isGood) console.log(`${result.stdout}${result.stderr}`.trimEnd());
  const tally = { passed: isGood ? 1 : 0, failed: isGood ? 0 : 1, skipped: 0 };
  console.log(resultLine(check.name, tally, Date.now() - startedAt));
  return tally;
}
