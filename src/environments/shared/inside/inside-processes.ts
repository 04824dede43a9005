/**
 * Kills from inside, for sandboxes whose processes this host does not see. The root shell is opened with the first snapshot, before an agent runs. Kept always:
 * process 1, the shell itself with those above it, and what keeps the sandbox up, which is the oldest program that was put into the namespace from outside (parent
 * 0), with its children and with what was there before it.
 */
import { randomBytes } from 'node:crypto';
import { isRolloutError, RolloutError } from '../../../core/errors.ts';
import { LinkedAbort } from '../../../core/linked-abort.ts';
import { raceSignal } from '../../../core/race-signal.ts';
import type { KillReceipt, ProcessSnapshot } from '../../environment.ts';
import type { Attach } from './attached-program.ts';
import { killFromInside, listScript } from './kill-from-inside.ts';
import { begun, runInside, type RunningProgram } from './running-program.ts';

const scriptLimitMs = 15_000;
const killLimitMs = 30_000;
const maxAttempts = 5;

/** Of what is always kept. */
const keepers = `
keepers=" 1 $$ "; up=$$
while look "/proc/$up/stat" && [ "$parent" -gt 1 ]; do up=$parent; keepers="$keepers$up "; done
main=; main_start=
for f in /proc/[0-9]*/stat; do
  look "$f" || continue
  [ "$parent" = 0 ] && [ "$pid" != 1 ] && [ "$pid" != $$ ] || continue
  if [ -z "$main" ] || [ "$start" -lt "$main_start" ] || { [ "$start" = "$main_start" ] && [ "$pid" -lt "$main" ]; }; then main=$pid; main_start=$start; fi
done
for f in /proc/[0-9]*/stat; do
  look "$f" && [ "$start" -le "$main_start" ] && [ "$pid" -lt "$main" ] && keepers="$keepers$pid "
done
keep=" $main "; grown=$main
while [ -n "$grown" ]; do
  grown=
  for f in /proc/[0-9]*/stat; do
    look "$f" || continue
    case "$keep" in *" $pid "*) continue;; *" $parent "*) keep="$keep$pid "; grown=1;; esac
  done
done
keepers="$keepers$keep"`;

interface InsideShell {
  readonly program: RunningProgram;
  readonly output: { onText: (text: string) => void };
}

export class InsideProcesses {
  readonly #attach: Attach;
  #shell: InsideShell | null = null;

  constructor(attach: Attach) {
    this.#attach = attach;
  }

  async snapshot(signal: AbortSignal): Promise<ProcessSnapshot> {
    return { keys: new Set(await this.#run(listScript(keepers), signal)) };
  }

  /** AGENT_NOT_STOPPED when something is still alive after half a minute. */
  async kill(keep: ProcessSnapshot, signal: AbortSignal): Promise<KillReceipt> {
    return await killFromInside((script) => this.#run(script, signal), {
      ...{ setUp: keepers, keep, limitMs: killLimitMs },
      remedy: 'The sandbox is destroyed; look at its host.',
    });
  }

  /** Lets go of the shell, which ends with its input. Idempotent. */
  close(): void {
    this.#shell?.program.detach();
    this.#shell = null;
  }

  /** Root in the sandbox may have killed our shell: it is opened again. */
  async #run(script: string, signal: AbortSignal): Promise<readonly string[]> {
    for (let attempt = 1; ; attempt += 1)
      try {
        signal.throwIfAborted();
        this.#shell ??= await this.#open(signal);
        return await runScript(this.#shell, script, signal);
      } catch (error) {
        signal.throwIfAborted();
        this.close();
        if (attempt === maxAttempts || isRolloutError(error, 'ENVIRONMENT_LOST')) throw error;
      }
  }

  async #open(signal: AbortSignal): Promise<InsideShell> {
    const output: InsideShell['output'] = { onText: () => undefined };
    using limit = new LinkedAbort([signal], { ms: scriptLimitMs, reason: silent });
    const program = await runInside(
      this.#attach,
      { run: { plain: 'sh' }, cwd: '/', env: {}, user: null, input: 'open' },
      {
        onOutput: (stream, bytes) => {
          if (stream === 'stdout') output.onText(bytes.toString('latin1'));
        },
        signal: limit.signal,
      },
    );
    if ((await begun(program, limit.signal)) === null) throw silent();
    return { program, output };
  }
}

/** The lines that a script prints. EXEC_FAILED when the shell has ended or does not come back. */
async function runScript(
  { program, output }: InsideShell,
  script: string,
  signal: AbortSignal,
): Promise<readonly string[]> {
  using limit = new LinkedAbort([signal], { ms: scriptLimitMs, reason: silent });
  const marker = randomBytes(16).toString('hex');
  const done = Promise.withResolvers<string>();
  void program.ended.then(() => done.reject(silent()));
  let seen = '';
  output.onText = (text) => {
    seen += text;
    const at = seen.indexOf(marker);
    if (at !== -1) done.resolve(seen.slice(0, at));
  };
  program.stdin.write(`${script}\necho ${marker}\n`);
  const printed = await raceSignal(done.promise, limit.signal);
  return printed.split('\n').filter((line) => line !== '');
}

function silent(): RolloutError {
  return new RolloutError('EXEC_FAILED', 'a root shell in the sandbox does not answer', {
    phase: 'agent-stop',
  });
}
