import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  timingsOf,
  TrialPhases,
  type DiagnosticPhase,
} from '../../../src/backends/shared/trial-diagnostics.ts';
import type { ErrorCode } from '../../../src/core/error-registry.ts';
import { RolloutError, type Phase } from '../../../src/core/errors.ts';
import type { TrialTimings } from '../../../src/trial/trial.ts';

const started = { type: 'trial:started', trialName: 't', taskName: 'k' } as const;
/** A stage that fails says so at its end. */
type Stage = readonly [phase: Phase, ...stepAndEnd: string[]];

/** A trial in which these stages ran, the failing ones marked. */
function phasesAfter(stages: readonly Stage[]): TrialPhases {
  const phases = new TrialPhases();
  phases.heed(started, null);
  for (const stage of stages) {
    const isFailed = stage.at(-1) === 'fails';
    const [phase, named] = stage;
    const step = named === undefined || named === 'fails' ? null : named;
    const about = { trialName: 't', stage: phase, phase, step };
    phases.heed({ type: 'stage:started', ...about }, null);
    phases.heed({ type: 'stage:ended', ...about, durationMs: 1, isFailed }, null);
  }
  return phases;
}

describe('the phase of a failure', () => {
  const rows: readonly (readonly [
    title: string,
    stages: readonly Stage[],
    failure: readonly [ErrorCode, Phase, step?: string],
    phase: DiagnosticPhase,
  ])[] = [
    ['a task that is wrong', [], ['TASK_CONFIG_INVALID', 'resolve'], 'setup'],
    ['what the machine cannot do', [], ['CAPABILITY_UNSUPPORTED', 'environment'], 'trial_setup'],
    [
      'an agent that is looked at before anything is up',
      [['agent-setup', 'fails']],
      ['AGENT_SETUP_FAILED', 'agent-setup'],
      'trial_setup',
    ],
    [
      'a sandbox',
      [['agent-setup'], ['environment', 'fails']],
      ['ENVIRONMENT_START_FAILED', 'environment'],
      'environment_setup',
    ],
    [
      'an installation',
      [['environment'], ['agent-setup', 'fails']],
      ['AGENT_SETUP_FAILED', 'agent-setup'],
      'agent_setup',
    ],
    [
      'the files of a step',
      [['environment'], ['agent-setup'], ['environment', 'one', 'fails']],
      ['ENVIRONMENT_LOST', 'environment', 'one'],
      'agent_setup',
    ],
    [
      'a sandbox that went under the agent, although its code says environment',
      [['environment'], ['agent-setup'], ['agent', 'fails'], ['collect']],
      ['ENVIRONMENT_LOST', 'environment'],
      'agent',
    ],
    [
      'an agent whose work was verified all the same',
      [['environment'], ['agent-setup'], ['agent', 'fails'], ['verifier']],
      ['AGENT_TIMEOUT', 'agent'],
      'agent',
    ],
    [
      'what an agent left, before the verification',
      [['agent'], ['agent-stop'], ['collect', 'fails']],
      ['TRANSFER_FAILED', 'collect'],
      'agent',
    ],
    [
      'a sandbox that went under the verifier',
      [['agent'], ['verifier', 'fails']],
      ['ENVIRONMENT_LOST', 'environment'],
      'verification',
    ],
    [
      'the step that is named, not one before it',
      [
        ['agent', 'one', 'fails'],
        ['verifier', 'one'],
        ['verifier', 'two', 'fails'],
      ],
      ['REWARD_MISSING', 'verifier', 'two'],
      'verification',
    ],
    [
      'a removal that failed',
      [['agent'], ['verifier']],
      ['ENVIRONMENT_DESTROY_FAILED', 'cleanup'],
      'verification',
    ],
    ['an end from outside', [['agent', 'fails']], ['SERVER_STOPPING', 'agent'], 'cancelled'],
  ];
  for (const [title, stages, [code, phase, step], expected] of rows)
    it(`of ${title} is where it arose: ${expected}`, () => {
      assert.equal(phasesAfter(stages).of({ code, phase }, step ?? null), expected);
    });

  it('of an agent that ran out of time is the agent, although no stage failed', () => {
    const phases = phasesAfter([['environment'], ['agent-setup'], ['agent']]);
    const late = new RolloutError('AGENT_TIMEOUT', 'late', { phase: 'agent' });
    const about = { trialName: 't', stage: 's', phase: 'verifier', step: null } as const;
    phases.heed({ type: 'stage:started', ...about }, late);
    assert.equal(phases.of(late, null), 'agent');
  });

  it('is the setup before there is a trial', () => {
    assert.equal(new TrialPhases().of({ code: 'GIT_FAILED', phase: 'environment' }, null), 'setup');
  });
});

describe('the times of a trial', () => {
  const span = (from: number, to: number | null) => ({
    started_at: new Date(from).toISOString(),
    finished_at: to === null ? null : new Date(to).toISOString(),
  });
  const times: TrialTimings = {
    ...span(1_000, 9_000),
    environment_setup: span(1_250, 2_000),
    agent_setup: span(2_000, 2_001),
    agent_execution: span(3_000, 2_000),
    verifier: { started_at: 'soon', finished_at: 'later' },
    step_results: null,
  };

  it('are seconds, never negative; what cannot be read is left out', () => {
    assert.deepEqual(timingsOf(times, 0.125), {
      ...{ setup: 0.125, trial_setup: 0.25, environment_setup: 0.75, agent_setup: 0.001 },
      ...{ agent: 0, trial: 8 },
    });
  });

  it('while the trial runs are those that the end will tell', () => {
    const early = timingsOf({ ...times, finished_at: null }, 0.125);
    const { trial, ...rest } = timingsOf(times, 0.125);
    assert.deepEqual(early, rest);
    assert.equal(trial, 8);
  });

  it('of a trial that never had a sandbox are its own and its setup', () => {
    const nothing = { ...times, environment_setup: null, agent_setup: null, agent_execution: null };
    assert.deepEqual(timingsOf(nothing, 0), { setup: 0, trial_setup: 8, trial: 8 });
  });
});
