/**
 * Processes of a sandbox, looked at and killed from inside by a script that the daemon runs as root. It first stops every process with one system call
 * (`kill -STOP -1` reaches all but init and the caller, so that nothing forks away), then reads /proc, kills what is not kept, and lets the rest go
 * on. Kept always: process 1, the script with those above it (the daemon), our own
 * sessions' shells while they are idle, and what ran when the sandbox had just started, before any program of a task.
 */
import { RolloutError } from '../../core/errors.ts';
import type { KillReceipt, ProcessSnapshot } from '../environment.ts';
import type { Toolbox } from './sessions/toolbox.ts';

const scriptLimitMs = 20_000;
const killLimitMs = 40_000;

/** `each` prints `pid:start` of every living process that is not kept, and runs its argument: process 1, the script and `$shells` with those above them are kept. */
const lookScript = `
look() {
  read -r line 2>/dev/null <"$1" || return 1
  pid=\${1#/proc/}; pid=\${pid%/stat}; set -- \${line##*) }
  state=$1; parent=$2; start=\${20}
}
above=" 1 "
for up in $$ $shells; do
  above="$above$up "
  while look "/proc/$up/stat" && [ "$parent" -gt 1 ]; do up=$parent; above="$above$up "; done
done
each() {
  for f in /proc/[0-9]*/stat; do
    look "$f" || continue
    case "$state" in Z|X) continue;; esac
    case "$above" in *" $pid "*) continue;; esac
    case "$kept" in *" $pid:$start "*) continue;; esac
    echo "$pid:$start"; "$@"
  done
}
strike() { kill -KILL "$pid" 2>/dev/null; }`;

export class DaytonaProcesses {
  readonly #toolbox: Toolbox;
  #atBoot: ReadonlySet<string> = new Set();

  constructor(toolbox: Toolbox) {
    this.#toolbox = toolbox;
  }

  /** Remembers what runs before any program of a task does. */
  async remember(signal: AbortSignal): Promise<void> {
    this.#atBoot = (await this.snapshot(signal)).keys;
  }

  async snapshot(signal: AbortSignal): Promise<ProcessSnapshot> {
    return { keys: new Set(await this.#run(`shells=; kept=; ${lookScript}\neach :`, signal)) };
  }

  /** AGENT_NOT_STOPPED when something is still alive after 40 s. */
  async kill(
    keep: ProcessSnapshot,
    options: {
      /** Pids of our sessions' shells that wait for a command and have no children. */
      readonly shells: readonly number[];
      readonly signal: AbortSignal;
    },
  ): Promise<KillReceipt> {
    const { shells, signal } = options;
    const started = performance.now();
    const killed = new Set<string>();
    const kept = [...this.#atBoot, ...keep.keys].join(' ');
    const script = [
      `shells="${shells.join(' ')}"; kept=" ${kept} "`,
      lookScript,
      'kill -STOP -1 2>/dev/null; each strike; kill -CONT -1 2>/dev/null; :',
    ].join('\n');
    for (;;) {
      const left = await this.#run(script, signal);
      for (const key of left) killed.add(key);
      if (left.length === 0) break;
      if (performance.now() - started > killLimitMs)
        throw new RolloutError(
          'AGENT_NOT_STOPPED',
          `${left.length} processes of the sandbox are still alive`,
          {
            phase: 'agent-stop',
            remedy: 'The sandbox is destroyed; give it more memory if this happens again.',
          },
        );
    }
    return {
      killed: killed.size,
      remaining: 0,
      confirmedBy: ['pid-namespace'],
      durationMs: performance.now() - started,
    };
  }

  /** Both scripts may run twice: the second finds what the first has left. */
  async #run(script: string, signal: AbortSignal): Promise<readonly string[]> {
    const options = { signal, limitMs: scriptLimitMs, isIdempotent: true };
    const { exitCode, output } = await this.#toolbox.execute(script, options);
    if (exitCode === 0) return output.split('\n').filter((line) => /^\d+:\d+$/.test(line));
    throw new RolloutError('EXEC_FAILED', 'the processes of the sandbox cannot be looked at', {
      phase: 'agent-stop',
      detail: output.slice(0, 2_000),
    });
  }
}
