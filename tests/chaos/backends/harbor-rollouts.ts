/** Rollouts of a workflow and a grader written for osmosis-ai, unchanged, each in a sandbox of its own that reaches nothing but its model. */
import { osmosisPeerDir } from '../../../scripts/setup/osmosis-peer.js';
import type { ExecutionResult } from '../../../src/backends/execution-backend.ts';
import { Limiter } from '../../../src/core/limiter.ts';
import { never } from '../../../src/core/linked-abort.ts';
import type { EnvironmentProvider } from '../../../src/environments/environment.ts';
import {
  harborBench,
  projectDir,
  pythonLayer,
  templateTask,
} from '../../backends/harbor/harbor-bench.ts';
import { HeardHooks } from '../../backends/native/native-bench.ts';
import { ChatUpstream } from '../../fakes/chat-upstream.ts';

const packagesAt = '/opt/osmosis';

export interface HarborEvidence {
  readonly id: string;
  readonly key: string;
  readonly question: string;
  readonly label: string;
  readonly result: ExecutionResult;
  readonly heard: readonly string[];
  /** Keys of the model calls that asked its question. */
  readonly calledWith: readonly string[];
}

export async function runHarborRollouts(
  provider: EnvironmentProvider,
  { count, concurrency }: { readonly count: number; readonly concurrency: number },
): Promise<readonly HarborEvidence[]> {
  await using upstream = await ChatUpstream.start((response, { body }) => {
    const { messages } = JSON.parse(body.toString()) as { messages: { content: string }[] };
    const message = { role: 'assistant', content: `answer to ${messages[0]?.content ?? ''}` };
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify({ choices: [{ message }] }));
  });
  const variables = `[environment.env]\nPYTHONPATH = "${packagesAt}"\n`;
  await using bench = await harborBench({
    provider,
    files: templateTask('debian:bookworm-slim', variables),
    options: { agent: 'quiz.sdk:SdkWorkflow', grader: 'quiz.sdk:SdkGrader', code_dir: projectDir },
    layers: [pythonLayer, { hostDir: osmosisPeerDir(), at: packagesAt }],
  });
  const limiter = new Limiter(concurrency);
  const one = async (index: number): Promise<HarborEvidence> => {
    const [id, key, question] = [`sdk-${index}`, `key-of-sdk-${index}-only`, `question ${index}`];
    // Every third one is wrong.
    const label = index % 3 === 2 ? 'another answer' : `answer to ${question}`;
    const hooks = new HeardHooks();
    const execution = bench.backend.execute(
      {
        ...{ id, label, metadata: { index }, agentTimeoutMs: null, graderTimeoutMs: null },
        ...{ queuedMs: 0, wantsGrade: true, secrets: [key] },
        prompt: [{ role: 'user', content: question }],
        route: { baseUrl: `http://127.0.0.1:${upstream.port}/v1`, apiKey: key },
      },
      hooks,
    );
    const result = await execution.result;
    await execution.release();
    const calls = upstream.received.filter(({ body }) => body.includes(`"${question}"`));
    const calledWith = calls.map(({ headers }) => headers.authorization ?? '');
    return { id, key, question, label, result, heard: hooks.heard, calledWith };
  };
  const indexes = Array.from({ length: count }, (_, index) => index);
  return await Promise.all(indexes.map((index) => limiter.run(never, () => one(index))));
}

/** Empty = as specified. */
export function judgeHarborRollout(evidence: HarborEvidence): readonly string[] {
  const { result, label, question, key, calledWith, heard } = evidence;
  const { status, sample, outcome, files, errMessage } = result;
  const isRight = label === `answer to ${question}`;
  const reward = isRight ? 1 : 0.25;
  const expected: readonly [string, unknown, unknown][] = [
    ['status', status, 'success'],
    ['reward', sample?.reward, reward],
    ['verdict', outcome.verdict?.rewards['reward'], reward],
    ['label', sample?.label, label],
    ['turns', sample?.metrics['turns'], 1],
    ['roles', sample?.messages.map(({ role }) => role).join(), 'user,assistant'],
    ['answer', sample?.messages[1]?.['content'], `answer to ${question}`],
    ['calls', calledWith.join(), `Bearer ${key}`],
    ['completions', heard.filter((what) => what === 'completed').length, 1],
    ['artifacts', files.some(({ name }) => name === 'artifacts'), true],
    ['key told', JSON.stringify(result).includes(key), false],
  ];
  const problems = expected
    .filter(([, found, wanted]) => found !== wanted)
    .map(([what, found, wanted]) => `${what}: ${String(found)} instead of ${String(wanted)}`);
  return errMessage === null ? problems : [...problems, errMessage];
}

/** What the judge has to find. */
export function tamperedHarborEvidence(
  evidence: HarborEvidence,
): readonly (readonly [string, HarborEvidence])[] {
  const { result } = evidence;
  const { sample } = result;
  if (sample === null) throw new Error('only a good rollout can be spoilt');
  const withSample = (over: Partial<typeof sample>): HarborEvidence => ({
    ...evidence,
    result: { ...result, sample: { ...sample, ...over } },
  });
  return [
    ['another reward', withSample({ reward: 0.5 })],
    ['no messages', withSample({ messages: [] })],
    [
      'the messages of another',
      withSample({ messages: [{ role: 'user' }, { role: 'assistant' }] }),
    ],
    ['a key in the sample', withSample({ extraFields: { key: evidence.key } })],
    ['a call with another key', { ...evidence, calledWith: ['Bearer key-of-another'] }],
    ['two calls', { ...evidence, calledWith: [...evidence.calledWith, ...evidence.calledWith] }],
    ['no completion', { ...evidence, heard: [] }],
  ];
}
