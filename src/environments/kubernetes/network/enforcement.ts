/**
 * Whether the cluster enforces its policies, which nothing in the API tells: a sandbox that should reach nothing is asked whether it reaches the API server, whose address
 * every pod is given. Asked once for a provider, of an image with bash; what another image cannot be asked stays open.
 */
import { RolloutError } from '../../../core/errors.ts';
import type { Clock } from '../../../core/clock.ts';

/** 0: reached. 7: not. 8: cannot be asked. */
const question = [
  'command -v bash >/dev/null && command -v timeout >/dev/null && [ -n "$KUBERNETES_SERVICE_HOST" ] || exit 8',
  `timeout 1 bash -c 'exec 3<>"/dev/tcp/$KUBERNETES_SERVICE_HOST/$KUBERNETES_SERVICE_PORT"' 2>/dev/null && exit 0`,
  'exit 7',
].join('\n');

/** A network plugin hears of a policy a moment after the API server. */
const tries = 5;
const pauseMs = 1_000;

export class Enforcement {
  readonly #clock: Clock;
  #isProved = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** `run` runs a command in a sandbox without a network and answers its exit code. ENVIRONMENT_UNAVAILABLE when the sandbox has one. */
  async prove(run: (command: string) => Promise<number>, signal: AbortSignal): Promise<void> {
    if (this.#isProved) return;
    for (let count = 1; ; count += 1) {
      const exitCode = await run(question);
      if (exitCode === 8) return;
      if (exitCode !== 0) break;
      if (count === tries) throw notEnforced();
      await this.#clock.sleep(pauseMs, signal);
    }
    this.#isProved = true;
  }
}

function notEnforced(): RolloutError {
  return new RolloutError(
    'ENVIRONMENT_UNAVAILABLE',
    'the cluster takes network policies and does not enforce them: a sandbox without a network reaches the API server',
    {
      phase: 'environment',
      field: 'environment.kwargs.network_policies',
      retryable: false,
      remedy:
        'Use a network plugin that enforces NetworkPolicy, or set network_policies to false and run tasks with a public network only.',
    },
  );
}
