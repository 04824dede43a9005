import { underNetwork } from '../network-phase.ts';
import type { RoundRun, Stage } from '../stage.ts';
import { verifyIn } from '../verification.ts';

/** Verifies in the agent's own sandbox. */
export const verifyShared: Stage<RoundRun> = {
  name: 'running verifier',
  phase: 'verifier',
  applies: (run) => run.round.verifier?.mode === 'shared',
  async run(run, signal) {
    const { environment, outcome, record, round } = run;
    const { verifier, network } = round;
    if (verifier === null) return;
    const phase = { environment, baseline: network.environment, policy: network.verifier };
    const scope = run.roundDeadline.child('verifier');
    await record.timed('verifier_ms', () =>
      record.stamped(
        (timing) => (outcome.verifierTiming = timing),
        () =>
          underNetwork(phase, signal, () =>
            verifyIn(run, { environment, verifier, scope }, signal),
          ),
      ),
    );
  },
};
