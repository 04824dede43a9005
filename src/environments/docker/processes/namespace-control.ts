/**
 * Kills from inside, for daemons whose processes this host does not see or may not kill. The root shell is opened with the first snapshot, before an agent runs.
 */
import { isRolloutError } from '../../../core/errors.ts';
import { never } from '../../../core/linked-abort.ts';
import type { KillReceipt, ProcessSnapshot } from '../../environment.ts';
import { killFromInside, listScript } from '../../shared/inside/kill-from-inside.ts';
import type { ExecTarget } from '../container-exec.ts';
import { killLimitMs, type ProcessControl } from './process-control.ts';
import { RootShell } from './root-shell.ts';

const maxAttempts = 5;
/** Processes that starting one shell may need at a time. */
const roomFor = 64;

/** Of what is always kept: init, this shell and the chain to the keep-alive command. */
const keepers = `
keepers=" 1 $$ "; first=; first_start=
for f in /proc/[0-9]*/stat; do
  look "$f" || continue
  [ "$parent" = 1 ] && [ "$pid" != $$ ] || continue
  if [ -z "$first" ] || [ "$start" -lt "$first_start" ] || { [ "$start" = "$first_start" ] && [ "$pid" -lt "$first" ]; }; then first=$pid; first_start=$start; fi
done
[ -n "$first" ] && keepers="$keepers$first "
chain=$first; grown=1
while [ -n "$grown" ]; do
  grown=
  for f in /proc/[0-9]*/stat; do
    look "$f" || continue
    case "$keepers" in *" $pid "*) continue;; esac
    [ -n "$chain" ] && [ "$parent" = "$chain" ] || continue
    name=\${line#*(}; name=\${name%%)*}
    case "$name" in sleep|sh|bash|dash|ash|busybox) keepers="$keepers$pid "; chain=$pid; grown=1; break;; esac
  done
done`;

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
    return { keys: new Set(await this.#run(listScript(keepers), signal)) };
  }

  async kill(keep: ProcessSnapshot, signal: AbortSignal): Promise<KillReceipt> {
    return await killFromInside((script) => this.#run(script, signal), {
      ...{ setUp: keepers, keep, limitMs: killLimitMs },
      remedy: 'The sandbox is destroyed; look at the Docker host.',
    });
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
