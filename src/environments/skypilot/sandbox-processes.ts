/**
 * The processes of a sandbox, looked at and killed from inside its pid namespace by a root command. Its script stops everything it may before it
 * looks, so that nothing forks away meanwhile; it runs on builtins, and again until it finds nothing.
 */
import { RolloutError } from '../../core/errors.ts';
import { LinkedAbort } from '../../core/linked-abort.ts';
import type { KillReceipt, ProcessSnapshot } from '../environment.ts';
import { skyFailure } from './sky-error.ts';
import type { SkyService } from './sky-service.ts';

const killMs = 15_000;
const limitSec = 30;

/** \`each\` calls \`see PID:START\` for every living process but init, the script and what the script hangs on. */
const each = `
own=" 1 $$ "; at=$$
while read -r stat 2>/dev/null <"/proc/$at/stat"; do
  set -- \${stat##*) }; at=$2
  [ "$at" -gt 1 ] || break
  own="$own$at "
done
each() {
  for f in /proc/[0-9]*/stat; do
    read -r stat 2>/dev/null <"$f" || continue
    pid=\${f#/proc/}; pid=\${pid%/stat}; set -- \${stat##*) }
    case $1 in Z|X) continue;; esac
    case $own in *" $pid "*) continue;; esac
    see "$pid:\${20}"
  done
}`;

const list = `${each}
see() { echo "$1"; }
each`;

function killScript(keep: readonly string[]): string {
  return `${each}
kept=" ${keep.join(' ')} "
see() { case $kept in *" $1 "*) ;; *) echo "$1"; kill -KILL "\${1%%:*}" 2>/dev/null;; esac; }
kill -STOP -1 2>/dev/null
each
kill -CONT -1 2>/dev/null; :`;
}

export class SandboxProcesses {
  readonly #service: SkyService;
  readonly #sandbox: string;
  /** What a fresh sandbox runs: its init and what keeps it up. Never killed. */
  #ofSandbox: ReadonlySet<string> = new Set();

  constructor(service: SkyService, sandbox: string) {
    this.#service = service;
    this.#sandbox = sandbox;
  }

  /** Once, when the sandbox has started and nothing of the trial runs. */
  async learn(signal: AbortSignal): Promise<void> {
    this.#ofSandbox = new Set(await this.#lines(list, signal));
  }

  async snapshot(signal: AbortSignal): Promise<ProcessSnapshot> {
    return { keys: new Set(await this.#attributed(list, signal)) };
  }

  async kill(keep: ProcessSnapshot, signal: AbortSignal): Promise<KillReceipt> {
    const began = performance.now();
    using limit = new LinkedAbort([signal], { ms: killMs, reason: () => alive(0) });
    const script = killScript([...this.#ofSandbox, ...keep.keys]);
    const killed = new Set<string>();
    for (;;) {
      const left = await this.#attributed(script, limit.signal);
      for (const key of left) killed.add(key);
      if (left.length === 0) break;
      if (performance.now() - began > killMs) throw alive(left.length);
    }
    return {
      killed: killed.size,
      remaining: 0,
      confirmedBy: ['pid-namespace'],
      durationMs: performance.now() - began,
    };
  }

  async #attributed(script: string, signal: AbortSignal): Promise<readonly string[]> {
    try {
      return await this.#lines(script, signal);
    } catch (error) {
      signal.throwIfAborted();
      throw skyFailure(error, {
        code: 'AGENT_NOT_STOPPED',
        phase: 'agent-stop',
        what: 'looking at the processes of the sandbox',
      });
    }
  }

  async #lines(script: string, signal: AbortSignal): Promise<readonly string[]> {
    const argv = ['sh', '-c', script];
    const request = { name: this.#sandbox, argv, limitSec, repeatable: true };
    const { exitCode, stdout, stderr } = await this.#service.execute(request, signal);
    if (exitCode !== 0) throw new Error(`a look ended with ${exitCode}: ${stderr.toString()}`);
    return stdout
      .toString('latin1')
      .split('\n')
      .filter((line) => line !== '');
  }
}

function alive(count: number): RolloutError {
  const what = count === 0 ? 'processes' : `${count} processes`;
  return new RolloutError('AGENT_NOT_STOPPED', `${what} of the sandbox are still alive`, {
    phase: 'agent-stop',
    remedy: 'The sandbox is destroyed; look at its pod.',
  });
}
