import { runProcess } from '../tasks/references/child-process.ts';
import type { ProgramRunner } from '../agents/installed/program-runner.ts';

/** Installing hundreds of megabytes over a slow line; whoever waits has a limit of its own. */
const longestMs = 30 * 60_000;

export const runProgram: ProgramRunner = (argv, options) =>
  runProcess(argv, {
    ...options,
    input: '',
    timeoutMs: longestMs,
    timeoutReason: () => new Error(`${argv[0]} has not ended after ${longestMs / 60_000} minutes`),
  });
