import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { cannedReply } from '../../../src/agents/terminus-2/context-overflow.ts';
import {
  compactionNote,
  failedSummaryNote,
  overflowNote,
} from '../../../src/agents/terminus-2/prompts/summary-prompts.ts';
import { RolloutError, isRolloutError } from '../../../src/core/errors.ts';
import type { AtifStep, AtifTrajectory } from '../../../src/wire/atif/atif.ts';
import { validateTrajectory } from '../../../src/trajectory/validate.ts';
import { done, inOrder, json, runLoop, type LoopRun } from './loop-bench.ts';
import { assertEveryCallRecorded } from './recorded-calls.ts';
import type { ScriptedReply } from './scripted-engine.ts';

const overflow = (): RolloutError =>
  new RolloutError('CONTEXT_OVERFLOW', 'too long', { phase: 'model-call' });
const broken = (): RolloutError =>
  new RolloutError('ENGINE_REQUEST_INVALID', 'no', { phase: 'model-call' });
const work = json({ commands: ['ls\n'] });
const sized = (text: string, promptTokens: number): ScriptedReply => ({
  text,
  usage: { promptTokens, completionTokens: 10, cachedTokens: null, reasoningTokens: null },
});

const small = { model_info: { max_input_tokens: 20_000 } };

async function run(
  replies: readonly ScriptedReply[],
  kwargs: Readonly<Record<string, unknown>> = {},
): Promise<LoopRun> {
  const ended = await runLoop({ script: inOrder(...replies), kwargs });
  assertEveryCallRecorded(ended);
  for (const [name, document] of Object.entries(ended.documents))
    assert.deepEqual(validateTrajectory(document), [], name);
  return ended;
}

const sources = (document: AtifTrajectory | undefined): string[] =>
  (document?.steps ?? []).map(({ source }) => source);
const refsOf = (step: AtifStep | undefined) =>
  step?.observation?.results[0]?.subagent_trajectory_ref ?? [];
const handoffs = (ended: LoopRun): readonly AtifStep[] =>
  (ended.main?.steps ?? []).filter(({ source }) => source === 'system');

describe('a conversation with little room left', () => {
  test('is summed up by three side calls and goes on from the questions and their answers', async () => {
    const ended = await run(
      [sized(work, 12_500), 'the summary', 'the questions', 'the answers', sized(done, 100), done],
      small,
    );
    assert.equal(ended.error, null);
    const { engine } = ended;
    const [first] = engine.contents(0);
    assert.deepEqual(engine.contents(1).slice(0, 2), [first, work]);
    assert.equal(engine.contents(2).length, 1);
    assert.ok(String(engine.contents(2)[0]).includes('the summary'));
    assert.ok(String(engine.contents(2)[0]).includes('<the screen>'));
    const known = [...engine.contents(1), 'the summary'];
    assert.deepEqual(engine.contents(3).slice(0, -1), known);
    assert.ok(String(engine.contents(3).at(-1)).includes('the questions'));
    const afterwards = engine.contents(4);
    assert.deepEqual(afterwards.slice(0, 3), [first, engine.contents(2)[0], 'the questions']);
    assert.ok(String(afterwards[3]).includes('the answers'));
    assert.equal(afterwards.length, 4);
  });

  test('is recorded as a handoff with three documents beside it', async () => {
    const ended = await run(
      [sized(work, 12_500), 'the summary', 'the questions', 'the answers', sized(done, 100), done],
      small,
    );
    const { main, documents, result } = ended;
    assert.deepEqual(Object.keys(documents), [
      'trajectory.json',
      'trajectory.summarization-1-answers.json',
      'trajectory.summarization-1-questions.json',
      'trajectory.summarization-1-summary.json',
    ]);
    assert.deepEqual(sources(main), ['user', 'agent', 'system', 'user', 'agent', 'agent']);
    const handoff = main?.steps[2];
    assert.equal(handoff?.message, compactionNote);
    assert.deepEqual(handoff.extra, {
      context_management: { type: 'compaction', boundary: 'replace' },
    });
    assert.deepEqual(
      refsOf(handoff).map((ref) => [ref.session_id, ref.trajectory_path]),
      ['summary', 'questions', 'answers'].map((role) => [
        `session-summarization-1-${role}`,
        `trajectory.summarization-1-${role}.json`,
      ]),
    );
    assert.deepEqual(main?.steps[3]?.message, ended.engine.contents(4)[3]);
    const answers = documents['trajectory.summarization-1-answers.json'];
    assert.equal(answers?.agent.name, 'terminus-2-summarization-answers');
    assert.deepEqual(answers.agent.extra, {
      parent_session_id: 'session',
      summarization_index: 1,
    });
    assert.deepEqual(sources(answers), ['user', 'agent', 'user', 'agent', 'user', 'agent']);
    assert.deepEqual(
      answers.steps.map(({ is_copied_context: isCopied, metrics }) => [
        isCopied === true,
        metrics !== undefined,
      ]),
      [...Array.from({ length: 4 }, () => [true, false]), [false, false], [false, true]],
    );
    assert.deepEqual(result?.metadata?.['summarization_count'], 1);
    assert.equal(result.rollout_details?.length, 4);
    assert.equal(main?.final_metrics?.total_prompt_tokens, 12_500 + 3 * 3 + 100 + 3);
  });

  test('gives away no prompt with a secret that only the screen between its turns showed', async () => {
    const secret = 'sk-very-secret-value';
    const ended = await runLoop({
      script: inOrder(sized(work, 12_500), 'summary', 'questions', 'answers', sized(done, 9), done),
      kwargs: small,
      secrets: [secret],
      // Broken at the edge of the terminal.
      terminal: { screen: () => Promise.resolve(`$ echo ${secret.replace('-', '-\n')}`) },
    });
    const steps = ended.main?.steps ?? [];
    assert.ok(Array.isArray(steps[1]?.metrics?.prompt_token_ids));
    assert.equal(steps[4]?.metrics?.prompt_token_ids, undefined);
    assert.ok(Array.isArray(steps[4]?.metrics?.completion_token_ids));
    assert.deepEqual(ended.result?.rollout_details?.[0], {
      prompt_token_ids: [ended.engine.calls[0]?.result?.promptIds, [], []],
      completion_token_ids: [ended.engine.calls[0]?.result?.outputIds, [], []],
      logprobs: [ended.engine.calls[0]?.result?.logprobs, [], []],
    });
    assert.ok(!JSON.stringify(ended.documents).includes('very-secret'));
  });

  test('goes on as it was when the summary fails, and keeps the side calls that were made', async () => {
    const ended = await run([sized(work, 12_500), 'the summary', broken(), done, done], small);
    // It is tried again before the next turn: that one has room for neither.
    assert.equal(ended.engine.calls.length, 4 + 1);
    assert.deepEqual(ended.engine.contents(3).slice(1), [work, '<output 1>']);
    const [note] = handoffs(ended);
    assert.equal(note?.message, failedSummaryNote);
    assert.equal(refsOf(note).length, 1);
    assert.equal(note.extra, undefined);
  });

  test('is left alone with the threshold at 0, without summaries, and while there is room', async () => {
    const rows: readonly Readonly<Record<string, unknown>>[] = [
      { ...small, proactive_summarization_threshold: 0 },
      { ...small, enable_summarize: false },
      { model_info: { max_input_tokens: 20_510 } },
      {},
    ];
    for (const kwargs of rows) {
      const ended = await run([sized(work, 12_500), done, done], kwargs);
      assert.equal(ended.engine.calls.length, 3);
    }
  });

  test('is not summed up in a small context before half of it is used', async () => {
    const rows: readonly (readonly [tokens: number, calls: number])[] = [
      [4000, 3],
      [4200, 6],
    ];
    for (const [tokens, calls] of rows) {
      const ended = await run(
        [
          sized(work, tokens),
          ...(calls === 6 ? ['summary', 'questions', 'answers'] : []),
          done,
          done,
        ],
        { model_info: { max_input_tokens: 8192 } },
      );
      assert.equal(ended.engine.calls.length, calls);
    }
  });

  test('becomes a new document with linear history', async () => {
    const ended = await run(
      [sized(work, 12_500), 'the summary', 'the questions', 'the answers', sized(done, 100), done],
      { ...small, trajectory_config: { linear_history: true } },
    );
    const { main, documents } = ended;
    assert.deepEqual(sources(main), ['user', 'agent', 'system']);
    assert.equal(main?.continued_trajectory_ref, 'trajectory.cont-1.json');
    const next = documents['trajectory.cont-1.json'];
    assert.equal(next?.session_id, 'session-cont-1');
    assert.equal(next.agent.extra?.['continuation_index'], 1);
    assert.deepEqual(sources(next), ['user', 'user', 'agent', 'user', 'agent', 'agent']);
    assert.deepEqual(
      next.steps.slice(0, 4).map(({ message }) => message),
      ended.engine.contents(4),
    );
    assert.deepEqual(
      next.steps.map((step) => step.is_copied_context === true),
      [true, true, true, false, false, false],
    );
  });
});

describe('a conversation that the engine refuses', () => {
  const long = (): readonly ScriptedReply[] => [
    sized(work, 1000),
    sized(work, 4000),
    sized(work, 9000),
  ];

  test('loses its newest turns until there is room, and is summed up', async () => {
    const ended = await run(
      [...long(), overflow(), 'summary', 'questions', 'answers', done, done],
      { proactive_summarization_threshold: 0 },
    );
    assert.equal(ended.error, null);
    // Of about 9,010 tokens 4,000 must go: the third turn.
    assert.equal(ended.engine.contents(4).length, 2 * 2 + 1);
    assert.deepEqual(ended.engine.contents(7).slice(1, 3), [
      ended.engine.contents(5)[0],
      'questions',
    ]);
    assert.equal(handoffs(ended)[0]?.message, overflowNote);
    assert.equal(refsOf(handoffs(ended)[0]).length, 3);
  });

  test('gets a short summary when the full one fails, else the end of the screen', async () => {
    const short = await run([...long(), overflow(), overflow(), 'in short', done, done]);
    assert.equal(short.engine.contents(5).length, 1);
    assert.match(String(short.engine.contents(6).at(-1)), /Do the thing\.[^]*in short/);
    assert.equal(
      refsOf(handoffs(short)[0])[0]?.trajectory_path,
      'trajectory.summarization-1-short-summary.json',
    );
    const screen = await run([...long(), overflow(), overflow(), broken(), done, done]);
    assert.match(String(screen.engine.contents(6).at(-1)), /Do the thing\.[^]*<the screen>/);
    assert.equal(screen.engine.contents(6).length, 2 * 2 + 1);
    assert.deepEqual(refsOf(handoffs(screen)[0]), []);
    assert.equal(screen.error, null);
  });

  test('keeps the side calls of a summary that failed half way', async () => {
    const ended = await run([...long(), overflow(), 'summary', overflow(), 'in short', done, done]);
    assert.deepEqual(
      refsOf(handoffs(ended)[0]).map((ref) => ref.trajectory_path),
      ['trajectory.summarization-1-summary.json', 'trajectory.summarization-1-short-summary.json'],
    );
  });

  test('is asked with its first message only when even that is refused', async () => {
    const ended = await run([work, overflow(), overflow(), 'short', overflow(), done, done]);
    assert.equal(ended.error, null);
    const asked = ended.engine.contents(5);
    assert.deepEqual(asked, [ended.engine.contents(0)[0], ended.engine.contents(4).at(-1)]);
  });

  test('is answered by a canned reply once, and ends the run the second time', async () => {
    const refusals = [overflow(), overflow(), 'short', overflow(), overflow()];
    const once = await run([work, ...refusals, done, done]);
    assert.equal(once.error, null);
    const canned = once.main?.steps.find(({ llm_call_count: calls }) => calls === 0);
    assert.equal(canned?.message, cannedReply);
    assert.equal(canned.metrics, undefined);
    assert.match(String(once.engine.contents(6).at(-1)), /parsing errors/);
    const twice = await run([work, ...refusals, ...refusals]);
    assert.ok(isRolloutError(twice.error, 'CONTEXT_OVERFLOW'));
  });

  test('ends the run without summaries, and where nothing was said yet', async () => {
    const off = await run([work, overflow()], { enable_summarize: false });
    assert.ok(isRolloutError(off.error, 'CONTEXT_OVERFLOW'));
    assert.equal(off.engine.calls.length, 2);
    assert.equal(off.main?.steps.length, 2);
    const first = await run([overflow()]);
    assert.ok(isRolloutError(first.error, 'CONTEXT_OVERFLOW'));
    assert.equal(first.engine.calls.length, 1);
  });

  test('ends the run with another failure of the engine as that failure', async () => {
    const ended = await run([work, overflow(), 'summary', 'questions', 'answers', broken()]);
    assert.ok(isRolloutError(ended.error, 'ENGINE_REQUEST_INVALID'));
    assert.equal(refsOf(handoffs(ended)[0]).length, 3);
  });

  test('takes an empty summary for a failed one', async () => {
    const ended = await run([
      work,
      overflow(),
      { text: '  ', reasoning: 'hm' },
      'short',
      done,
      done,
    ]);
    assert.match(String(ended.engine.contents(4).at(-1)), /short/);
    assert.equal(refsOf(handoffs(ended)[0]).length, 2);
  });
});
