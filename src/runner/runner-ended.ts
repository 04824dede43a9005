/** Why a runner is gone, or could not be used. */
import { constants } from 'node:os';

export type RunnerEndKind =
  /** By itself: the code that it carried out ended it. */
  | 'exited'
  /** By somebody else: the machine, its operator. */
  | 'killed'
  /** Its program cannot be started. */
  | 'unstartable'
  /** It was not ready in time. */
  | 'late'
  /** It said what no runner says. */
  | 'protocol'
  /** By its owner. */
  | 'terminated';

export class RunnerEnded extends Error {
  override readonly name = 'RunnerEnded';
  readonly kind: RunnerEndKind;
  /** What it printed last; may be empty. */
  readonly lastWords: string;

  /** `message` goes on after the name of what was carried out: `ended its process with exit code 3`. */
  constructor(kind: RunnerEndKind, message: string, lastWords = '') {
    super(message);
    this.kind = kind;
    this.lastWords = lastWords;
  }
}

/** The user's code cannot be loaded; the message is that of its language. */
export class RunnerBroken extends Error {
  override readonly name = 'RunnerBroken';
  /** A package that it imports and that the interpreter does not have; null = something else is wrong. */
  readonly missing: string | null;

  constructor(message: string, missing: string | null) {
    super(message);
    this.missing = missing;
  }
}

/** No code sends these to itself as a rule, and a kernel without memory sends the first. */
const foreignSignals = ['SIGKILL', 'SIGTERM', 'SIGHUP', 'SIGINT'] as const;
const signalExit = 128;

export function describeExit(code: number | null, signal: NodeJS.Signals | null, said: string) {
  const foreign = foreignSignals.find(
    // Whoever stands between us and the runner tells of a signal by the exit code.
    (name) => name === signal || code === signalExit + constants.signals[name],
  );
  const words = lastWords(said);
  if (foreign === 'SIGKILL')
    return new RunnerEnded('killed', 'was killed from outside, or for lack of memory', words);
  if (foreign !== undefined)
    return new RunnerEnded('killed', `was ended from outside (${foreign})`, words);
  const how =
    signal === null ? `ended its process with exit code ${code ?? 0}` : `crashed (${signal})`;
  return new RunnerEnded('exited', how, words);
}

const lastLines = 3;
const longestWords = 600;

function lastWords(said: string): string {
  const lines = said.split('\n').filter((line) => line.trim() !== '');
  return lines.slice(-lastLines).join('\n').slice(-longestWords).toWellFormed();
}
