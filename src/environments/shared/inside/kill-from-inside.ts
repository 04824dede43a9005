/**
 * What a root shell in a sandbox's pid namespace does: it reads /proc, and kills what is not to be kept. First it stops every process with one system call
 * (`kill -STOP -1` reaches all but init and the caller, so a fork bomb cannot outrun it); at the end it lets the rest go on. Builtins only: it works where no
 * process can be started any more.
 */
import { RolloutError } from '../../../core/errors.ts';
import type { KillReceipt, ProcessSnapshot } from '../../environment.ts';

/** `look /proc/PID/stat` sets `line`, `pid`, `state`, `parent` and `start`; false = it has gone. */
export const lookFunction = `
look() {
  read -r line 2>/dev/null <"$1" || return 1
  pid=\${1#/proc/}; pid=\${pid%/stat}; set -- \${line##*) }
  state=$1; parent=$2; start=\${20}
}`;

const others = `for f in /proc/[0-9]*/stat; do
  look "$f" || continue
  case "$state" in Z|X) continue;; esac
  case "$keepers" in *" $pid "*) continue;; esac`;

/** Prints `pid:start` of each living process outside `keepers`: what `setUp` makes of them, pids between spaces. */
export function listScript(setUp: string): string {
  return `${lookFunction}${setUp}
${others}
  echo "$pid:$start"
done; :`;
}

function killScript(setUp: string, keep: ProcessSnapshot): string {
  return `${lookFunction}${setUp}
kept=" ${[...keep.keys].join(' ')} "
kill -STOP -1 2>/dev/null
${others}
  case "$kept" in *" $pid:$start "*) continue;; esac
  echo "$pid:$start"; kill -KILL "$pid" 2>/dev/null
done
kill -CONT -1 2>/dev/null; :`;
}

export interface KillFromInside {
  /** Sets `keepers`, with `look`. */
  readonly setUp: string;
  readonly keep: ProcessSnapshot;
  readonly limitMs: number;
  readonly remedy: string;
}

/** Until nothing is left. `run` answers with the lines of a script. AGENT_NOT_STOPPED when something is still alive after `limitMs`. */
export async function killFromInside(
  run: (script: string) => Promise<readonly string[]>,
  { setUp, keep, limitMs, remedy }: KillFromInside,
): Promise<KillReceipt> {
  const started = performance.now();
  const killed = new Set<string>();
  const script = killScript(setUp, keep);
  for (;;) {
    const left = await run(script);
    for (const key of left) killed.add(key);
    if (left.length === 0) break;
    if (performance.now() - started > limitMs)
      throw new RolloutError(
        'AGENT_NOT_STOPPED',
        `${left.length} processes of the sandbox are still alive`,
        { phase: 'agent-stop', remedy },
      );
  }
  return {
    killed: killed.size,
    remaining: 0,
    confirmedBy: ['pid-namespace'],
    durationMs: performance.now() - started,
  };
}
