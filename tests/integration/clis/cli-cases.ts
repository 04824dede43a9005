/** What every command line agent has to show: one case per row, each a trial and what must be true of it. */
import assert from 'node:assert/strict';
import { isDeepStrictEqual } from 'node:util';
import { aiderCli } from '../../../src/agents/aider/aider-cli.ts';
import { claudeCli } from '../../../src/agents/claude-code/claude-cli.ts';
import { codexCli } from '../../../src/agents/codex/codex-cli.ts';
import { opencodeCli } from '../../../src/agents/opencode/opencode-cli.ts';
import { miniCli } from '../../../src/agents/mini-swe-agent/mini-cli.ts';
import { qwenCli } from '../../../src/agents/qwen-coder/qwen-cli.ts';
import { capturedCallsName } from '../../../src/gateway/capture/file-capture.ts';
import type { Cli } from '../../../src/agents/installed/cli.ts';
import { validateTrajectory } from '../../../src/trajectory/validate.ts';
import type { AtifStep } from '../../../src/wire/atif/atif.ts';
import type { EngineLogLine } from '../../support/engine-process.ts';
import {
  fixtureFile,
  readFixture,
  requestShapes,
  saveFixture,
  withoutLengths,
} from './request-fixtures.ts';
import { runCli, upstreamKey, type CliOutcome, type CliTrial } from './cli-bench.ts';

/** What is particular to an agent. */
export interface CliSubject {
  readonly agent: string;
  readonly path: string;
  /** What it sends in a turn with a shell command. */
  readonly fixtureFile: string;
  /** What its log calls its shell; null = it calls no tools, and what it says becomes files. */
  readonly shell: string | null;
  /** What it calls to say that it is done; absent = it does not have to. */
  readonly ending?: string;
  /** Options with which it gives up on a silent stream soon, but after a sign of life is due. */
  readonly impatient: Readonly<Record<string, unknown>>;
  /** A turn of it costs too much for the suite. */
  readonly onlyProven?: true;
}

const fixtureOf = ({ name, version }: Cli) => ({
  agent: name,
  fixtureFile: fixtureFile(name, version),
});

export const cliSubjects: readonly CliSubject[] = [
  {
    ...{ ...fixtureOf(codexCli), path: '/v1/responses', shell: 'exec_command' },
    impatient: { stream_idle_timeout_ms: 15_000 },
  },
  {
    ...{ ...fixtureOf(opencodeCli), path: '/v1/chat/completions', shell: 'bash' },
    impatient: {},
  },
  {
    ...{ ...fixtureOf(qwenCli), path: '/v1/chat/completions', shell: 'run_shell_command' },
    impatient: {},
  },
  {
    ...{ ...fixtureOf(miniCli), path: '/v1/chat/completions', shell: 'bash', ending: 'bash' },
    impatient: {},
  },
  {
    ...{ ...fixtureOf(aiderCli), path: '/v1/chat/completions', shell: null, onlyProven: true },
    impatient: {},
  },
  { ...fixtureOf(claudeCli), path: '/v1/messages', shell: 'Bash', impatient: {} },
];

export interface CliCase {
  readonly name: string;
  /** Only for agents that call tools. */
  readonly needsTools?: true;
  trial(subject: CliSubject): CliTrial;
  check(outcome: CliOutcome, subject: CliSubject): void;
}

const solve = {
  shell: 'echo yes > /app/answer && cat /app/answer',
  // Where these are asked for instead: of what does not compile the model is told in a turn of its own.
  files: { answer: 'yes\n', 'half.py': 'x = (\n' },
};
/** What the command line agent's own key is in must not stay in a file of the trial. */
const tell = { ...solve, shell: `env; ${solve.shell}` };
const done = { say: 'All is done.' };

const answers = (steps: readonly AtifStep[]): readonly AtifStep[] =>
  steps.filter(({ source }) => source === 'agent');

export const cliCases: readonly CliCase[] = [
  {
    name: 'a turn with a shell command, or with an edit',
    trial: ({ agent }) => ({ agent, script: [{ reasoning: 'I look.', ...tell }, done] }),
    check(outcome, subject) {
      const steps = solved(outcome, subject);
      assert.equal(steps.length, 2);
      // A log that has no calls has no reasoning either.
      assert.equal(steps[0]?.reasoning_content, subject.shell === null ? undefined : 'I look.');
      assert.deepEqual(toolsOf(steps), [shellOf(subject), endingOf(subject)]);
      assert.match(JSON.stringify(steps[0]), /yes(\\+n|")/);
      assert.equal(steps[1]?.message, 'All is done.');
      assert.deepEqual(
        withoutLengths(requestShapes(outcome.calls)),
        readFixture(subject.fixtureFile),
      );
    },
  },
  {
    name: 'an edit of a file',
    needsTools: true,
    trial: ({ agent }) => ({
      agent,
      script: [{ write: '/app/answer', text: 'yes\n' }, done],
    }),
    check(outcome, subject) {
      const [edit] = solved(outcome, subject);
      assert.equal(edit?.tool_calls?.length, 1);
    },
  },
  {
    name: 'two calls side by side',
    needsTools: true,
    trial: ({ agent }) => ({
      agent,
      script: [{ shell: ['echo yes > /app/answer', 'echo two > /app/two'] }, done],
    }),
    check(outcome, subject) {
      const steps = solved(outcome, subject);
      const [both] = steps;
      assert.deepEqual(toolsOf(steps.slice(0, 1)), [[...shellOf(subject), ...shellOf(subject)]]);
      const answered = both?.observation?.results.map((result) => result.source_call_id);
      assert.deepEqual(
        answered?.toSorted(),
        both?.tool_calls?.map((call) => call.tool_call_id).toSorted(),
      );
    },
  },
  {
    name: 'a long answer',
    trial: ({ agent }) => ({ agent, script: [solve, { words: 1_500 }] }),
    check(outcome, subject) {
      const steps = solved(outcome, subject);
      assert.match(textOf(steps[1]), /^word0 .* word1499$/);
    },
  },
  {
    name: 'an engine that fails once, and is asked again',
    trial: ({ agent }) => ({
      agent,
      script: [solve, done],
      engine: { faults: '[{match: {nth: 2}, fault: status-500}]' },
    }),
    check(outcome, subject) {
      solved(outcome, subject);
      assert.deepEqual(outcome.calls.map(({ status }) => (status ?? 0) >= 500).filter(Boolean), [
        true,
      ]);
    },
  },
  {
    name: 'a stream that breaks off once, and is asked for again',
    trial: ({ agent }) => ({
      agent,
      script: [solve, done],
      engine: { faults: '[{match: {nth: 2}, fault: reset, afterTokens: 2}]' },
    }),
    check: (outcome, subject) => void solved(outcome, subject),
  },
  {
    name: 'a conversation that does not fit is its failure, verified',
    trial: ({ agent }) => ({
      agent,
      script: [solve, done],
      engine: {
        faults: '[{match: {promptContains: "Follow the script"}, fault: context-overflow}]',
      },
    }),
    check({ result, calls }) {
      assert.equal(result.slipway?.outcome.cause, 'AGENT_EXIT_NONZERO', reasonOf(result));
      assert.equal(result.exception_info?.exception_type, 'ContextWindowExceededError');
      assert.deepEqual(result.verifier_result, { rewards: { reward: 0 } });
      assert.equal(calls[0]?.status, 400);
    },
  },
  {
    name: 'an agent that is stopped in the middle of a stream keeps what came before',
    trial: ({ agent }) => ({
      agent,
      script: [solve, { words: 50 }],
      engine: { faults: '[{match: {nth: 2}, fault: stall, afterTokens: 5}]' },
      timeoutSec: 20,
    }),
    check({ result, trajectory, calls }, subject) {
      assert.equal(result.slipway?.outcome.cause, 'AGENT_TIMEOUT', reasonOf(result));
      assert.deepEqual(result.verifier_result, { rewards: { reward: 1 } });
      assert.equal(calls.length, 2);
      assert.deepEqual(validateTrajectory(trajectory), []);
      const steps = answers(trajectory?.steps ?? []);
      assert.deepEqual(toolsOf(steps.slice(0, 1)), [shellOf(subject)]);
    },
  },
];

/** A generation that says nothing for so long. */
export function silentCase(silenceMs: number): CliCase {
  return {
    name: `a generation that is silent for ${silenceMs / 1000} s`,
    trial: ({ agent, impatient }) => ({
      agent,
      script: [solve, done],
      kwargs: impatient,
      engine: { faults: `[{match: {nth: 2}, fault: stall, afterTokens: 2, ms: ${silenceMs}}]` },
      timeoutSec: silenceMs / 1000 + 120,
    }),
    check(outcome, subject) {
      solved(outcome, subject);
      assert.equal(outcome.calls.length, 2, 'nothing was asked twice');
    },
  };
}

/** `saves`: what the first case sent becomes the fixture. */
export async function runCase(
  one: CliCase,
  subject: CliSubject,
  { saves = false }: { readonly saves?: boolean } = {},
): Promise<CliOutcome> {
  const outcome = await runCli(one.trial(subject));
  if (saves && one === cliCases[0]) await saveFixture(subject.fixtureFile, outcome.calls);
  one.check(outcome, subject);
  noSecrets(outcome);
  return outcome;
}

/** Steps of the agent; the task was solved by its own calls, each on record under the id that the gateway gave it. */
function solved(
  { result, trajectory, calls, engineLog }: CliOutcome,
  subject: CliSubject,
): readonly AtifStep[] {
  assert.equal(result.exception_info, null, reasonOf(result));
  assert.deepEqual(result.verifier_result, { rewards: { reward: 1 } });
  assert.ok(trajectory !== null, 'a trajectory');
  assert.deepEqual(validateTrajectory(trajectory), []);
  assert.deepEqual([...new Set(calls.map(({ path }) => path.split('?')[0]))], [subject.path]);
  const steps = answers(trajectory.steps);
  for (const { metrics, extra } of steps) {
    assert.ok((metrics?.prompt_tokens ?? 0) > 0 && (metrics?.completion_tokens ?? 0) > 0);
    const { prompt_token_ids: prompt, completion_token_ids: sampled, logprobs } = metrics ?? {};
    const isSampled = (one: EngineLogLine): boolean =>
      isDeepStrictEqual([one.output_ids, one.logprobs], [sampled, logprobs]);
    const asked = engineLog.find(isSampled);
    assert.ok(asked !== undefined, `its token ids: ${JSON.stringify(sampled)}`);
    // It was shown its own key: the ids of what it reads from then on are taken out.
    if (extra?.['slipway'] === undefined) assert.deepEqual(prompt, asked.prompt_ids);
    else assert.equal(prompt, undefined);
    assert.match(String(metrics?.extra?.['response_id']), /^((resp|msg)_|chatcmpl-)?[\w-]+$/);
  }
  const instruction = trajectory.steps.filter(({ source }) => source === 'user').map(textOf);
  assert.ok(instruction.some((text) => text.includes('script')));
  return steps;
}

/** What the gateway has kept of its calls is left, and neither the model's key nor the trial's is in any file. */
function noSecrets({ files, keys, calls }: CliOutcome): void {
  assert.ok(files.has(capturedCallsName), 'its calls');
  assert.ok(keys.length > 0);
  for (const [name, text] of files)
    for (const key of [upstreamKey, ...keys]) assert.ok(!text.includes(key), `${name}: a key`);
  assert.ok(calls.every(({ headers }) => !JSON.stringify(headers).includes(upstreamKey)));
}

function textOf(step: AtifStep | undefined): string {
  return typeof step?.message === 'string' ? step.message : '';
}

function toolsOf(steps: readonly AtifStep[]): readonly (readonly string[])[] {
  return steps.map(({ tool_calls: calls }) => (calls ?? []).map((call) => call.function_name));
}

function shellOf({ shell }: CliSubject): readonly string[] {
  return shell === null ? [] : [shell];
}

function endingOf({ ending }: CliSubject): readonly string[] {
  return ending === undefined ? [] : [ending];
}

function reasonOf(result: CliOutcome['result']): string {
  return JSON.stringify(result.exception_info);
}
