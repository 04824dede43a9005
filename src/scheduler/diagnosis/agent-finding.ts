/**
 * Who holds up a rollout whose agent has its turn: the engine, if a call is under way or was refused; else the agent, and what its processes wait
 * for; else the agent's own program, which runs beside the sandbox.
 */
import type { RolloutFacts } from '../diagnosis.ts';
import type { WaitingOn } from '../../wire/rollout/progress.ts';
import { engineFinding } from './engine-finding.ts';
import {
  after,
  durationText,
  latest,
  moving,
  msSince,
  ordinaryWaitMs,
  type Finding,
} from './finding.ts';
import { processFinding } from './process-finding.ts';

/** What waits for the network, or for nothing that is known, is left in peace for longer. */
const quietMs = 30_000;

export function agentFinding(facts: RolloutFacts, wait: WaitingOn): Finding {
  const { view, probe, now } = facts;
  const engine = engineFinding(view.calls, { upstream: facts.upstream, now });
  if (engine !== null) return engine;
  const since = latest(wait.since, view.progress?.lastProgressAt, view.calls?.lastCallEndedAt);
  const { owner, deadline } = wait;
  const base = { owner, deadline, since: since ?? wait.since };
  const quiet = `no model call runs; the last thing happened ${durationText(msSince(base.since, now))} ago`;
  const found = processFinding(probe?.sandboxes.at(-1)?.processes ?? null);
  if (found === null || found.state === 'idle') {
    const evidence = [
      quiet,
      found === null
        ? 'its processes cannot be looked at'
        : 'no process of it is in the sandbox, except shells at their prompts',
    ];
    return after(
      ordinaryWaitMs,
      {
        ...{ ...base, evidence },
        kind: 'agent-sleeping',
        waitingOn: 'the agent to do anything',
        remedy: 'Look at the agent: it neither calls the model nor runs anything.',
      },
      now,
    );
  }
  const evidence = [...found.evidence, quiet];
  // A wait is no older than the process that waits.
  const sinceProcess = new Date(Math.max(base.since.getTime(), now.getTime() - found.ageMs));
  const told = { ...base, since: sinceProcess, evidence };
  switch (found.state) {
    case 'busy':
      return moving({ ...told, waitingOn: 'a program of the agent that runs' });
    case 'input':
      return after(
        ordinaryWaitMs,
        {
          ...told,
          kind: 'agent-waiting-for-input',
          waitingOn: 'input that nobody types',
          remedy:
            'Cancel it, or wait for its deadline; let the task answer such questions beforehand.',
        },
        now,
      );
    case 'asleep':
      return after(
        ordinaryWaitMs,
        {
          ...told,
          kind: 'agent-sleeping',
          waitingOn: 'a program of the agent that sleeps',
          remedy: 'Cancel it, or wait until the sleep or its deadline ends.',
        },
        now,
      );
    case 'network':
      return after(
        quietMs,
        {
          ...told,
          kind: 'unclear',
          waitingOn: 'a program of the agent that waits for a connection',
          remedy: 'See whether the sandbox may reach what the program wants: its network policy.',
        },
        now,
      );
  }
}
