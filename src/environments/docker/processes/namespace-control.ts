/**
 * Kills from inside, for daemons whose processes this host does not see or may not kill: a root shell in the container's pid
 * namespace first stops every process with one system call (`kill -STOP -1` reaches all but init and the caller, so a fork bomb
 * cannot outrun it), then reads /proc, kills what is not kept, and lets the rest go on. The shell is opened with the first snapshot,
 * before an agent runs, and its scripts use builtins only: they work where no process can be started any more.
 */
import { isRolloutError, RolloutError } from '../../../core/errors.ts';
import { never } from '../../../core/linked-abort.ts';
import type { KillReceipt, ProcessSnapshot } from '../../environment.ts';
import type { ExecTarget } from '../container-exec.ts';
import { killLimitMs, type ProcessControl } from './process-control.ts';
import { RootShell } from './root-shell.ts';

const maxAttempts = 5;
/** Processes that starting one shell may need at a time. */
const roomFor = 64;

/** Prints `pid:start` of each living process but init, this shell and the chain to the keep-alive command. */
const listScript = `
keepers=" 1 $$ "; first=; first_start=
for f in /proc/[0-9]*/stat; do
  read -r line 2>/dev/null <"$f" || continue
  pid=\${f#/proc/}; pid=\${pid%/stat}; set -- \${line##*) }
  [ "$2" = 1 ] && [ "$pid" != $$ ] || continue
  if [ -z "$first" ] || [ "\${20}" -lt "$first_start" ] || { [ "\${20}" = "$first_start" ] && [ "$pid" -lt "$first" ]; }; then first=$pid; first_start=\${20}; fi
done
[ -n "$first" ] && keepers="$keepers$first "
chain=$first; grown=1
while [ -n "$grown" ]; do
  grown=
  for f in /proc/[0-9]*/stat; do
    read -r line 2>/dev/null <"$f" || continue
    pid=\${f#/proc/}; pid=\${pid%/stat}; set -- \${line##*) }
    case "$keepers" in *" $pid "*) continue;; esac
    [ -n "$chain" ] && [ "$2" = "$chain" ] || continue
    name=\${line#*(}; name=\${name%%)*}
    case "$name" in sleep|sh|bash|dash|ash|busybox) keepers="$keepers$pid "; chain=$pid; grown=1; break;; esac
  done
done
list() {
  for f in /proc/[0-9]*/stat; do
    read -r line 2>/dev/null <"$f" || continue
    pid=\${f#/proc/}; pid=\${pid%/stat}; set -- \${line##*) }
    case "$1" in Z|X) continue;; esac
    case "$keepers" in *" $pid "*) continue;; esac
    echo "$pid:\${20}"
  done
}`;

export class NamespaceControl implements ProcessControl {
  readonly #target: ExecTarget;
  readonly #pidsLimit: number | null;
  #shell: RootShell | null = null;
  #hadShell = false;

  constructor(target: ExecTarget, pidsLimit: number | null) {
    this.#target = target;
    this.#pidsLimit = pidsLimit;
  }

  async snapshot(signal: AbortSignal): Promise<ProcessSnapshot> {
    return { keys: new Set(await this.#run(`${listScript}\nlist`, signal)) };
  }

  async kill(keep: ProcessSnapshot, signal: AbortSignal): Promise<KillReceipt> {
    const started = performance.now();
    const killed = new Set<string>();
    const script = `${listScript}
kept=" ${[...keep.keys].join(' ')} "
kill -STOP -1 2>/dev/null
for f in /proc/[0-9]*/stat; do
  read -r line 2>/dev/null <"$f" || continue
  pid=\${f#/proc/}; pid=\${pid%/stat}; set -- \${line##*) }
  case "$1" in Z|X) continue;; esac
  case "$keepers" in *" $pid "*) continue;; esac
  case "$kept" in *" $pid:\${20} "*) continue;; esac
  echo "$pid:\${20}"; kill -KILL "$pid" 2>/dev/null
done
kill -CONT -1 2>/dev/null; :`;
    for (;;) {
      const left = await this.#run(script, signal);
      for (const key of left) killed.add(key);
      if (left.length === 0) break;
      if (performance.now() - started > killLimitMs)
        throw new RolloutError(
          'AGENT_NOT_STOPPED',
          `${left.length} processes of the sandbox are still alive`,
          { phase: 'agent-stop', remedy: 'The sandbox is destroyed; look at the Docker host.' },
        );
    }
    return {
      killed: killed.size,
      remaining: 0,
      confirmedBy: ['pid-namespace'],
      durationMs: performance.now() - started,
    };
  }

  pids(): Promise<null> {
    return Promise.resolve(null);
  }

  close(): void {
    this.#shell?.close();
  }

  async #run(script: string, signal: AbortSignal): Promise<readonly string[]> {
    for (let attempt = 1; ; attempt += 1)
      try {
        this.#shell ??= await this.#open(signal);
        return await this.#shell.run(script, signal);
      } catch (error) {
        signal.throwIfAborted();
        this.#shell?.close();
        this.#shell = null;
        if (attempt === maxAttempts || isRolloutError(error, 'ENVIRONMENT_LOST')) throw error;
      }
  }

  /** Root in the sandbox may have killed our shell; a sandbox at its limit of processes gets a little room for another. */
  async #open(signal: AbortSignal): Promise<RootShell> {
    if (this.#hadShell && this.#pidsLimit !== null) await this.#limit(this.#pidsLimit + roomFor);
    this.#hadShell = true;
    try {
      return await RootShell.open(this.#target, signal);
    } finally {
      if (this.#pidsLimit !== null) await this.#limit(this.#pidsLimit);
    }
  }

  async #limit(pids: number): Promise<void> {
    const path = `/containers/${this.#target.containerId}/update`;
    await this.#target.engine
      .json({ method: 'POST', path, json: { PidsLimit: pids }, signal: never, timeoutMs: 10_000 })
      .catch(() => undefined); // an engine without the limit has room; a lost container is reported by the shell
  }
}
