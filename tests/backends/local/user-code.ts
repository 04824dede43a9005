/** Workflows and graders that do what the request's metadata says: the user's module of the tests. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type {
  AgentWorkflow,
  Grader,
  GraderContext,
  WorkflowAnswer,
  WorkflowContext,
} from '../../../src/backends/local/user-code.ts';

type Act = (ctx: WorkflowContext) => unknown;

const spin = (ms: number): void => {
  for (const end = performance.now() + ms; performance.now() < end;);
};
const forever = (): never => {
  for (;;);
};
const aborted = async (signal: AbortSignal): Promise<void> =>
  await new Promise((resolve) => signal.addEventListener('abort', () => resolve()));
const named = ({ metadata }: WorkflowContext | GraderContext, key: string): string | undefined =>
  metadata?.[key] as string | undefined;
const answer = [{ role: 'assistant', content: 'done' }];
const turn = async (index: number): Promise<unknown> => ({
  role: 'assistant',
  content: `turn ${index}`,
  ids: Array.from({ length: 1_000 }, (_, at) => index + at),
});

const workflows: Readonly<Record<string, Act>> = {
  list: () => answer,
  echo: ({ prompt, metadata, config, model }) => ({
    messages: [
      ...prompt,
      { role: 'assistant', content: JSON.stringify({ metadata, config, model }) },
    ],
  }),
  output: () => ({ messages: answer, metrics: { turns: 2 }, info: { mine: true } }),
  nothing: () => undefined,
  'null-messages': () => ({ messages: null }),
  text: () => 'done',
  'unknown-key': () => ({ messages: answer, reward: 1 }),
  'nan-metric': () => ({ messages: answer, metrics: { loss: NaN } }),
  circular: () => {
    const message: Record<string, unknown> = { role: 'assistant' };
    message['self'] = message;
    return [message];
  },
  throws: () => {
    throw new Error('the tool broke');
  },
  'throws-long': () => {
    throw new Error(`x${'😀'.repeat(2_000)}`);
  },
  'throws-value': () => {
    throw new RangeError('a wrong value');
  },
  'throws-timeout': () => {
    throw new DOMException('the tool took too long', 'TimeoutError');
  },
  'throws-secret': ({ model }) => {
    throw new Error(`refused: ${model?.apiKey}`);
  },
  'throws-nothing': () => {
    // eslint-disable-next-line @typescript-eslint/only-throw-error
    throw null;
  },
  exits: () => process.exit(3),
  'fails-later': async () => {
    setTimeout(() => {
      throw new Error('in a timer');
    }, 0);
    return await new Promise(() => undefined);
  },
  // A conversation that is never over.
  'eats-memory': async () => {
    const kept: unknown[] = [];
    for (;;) kept.push(await turn(kept.length));
  },
  loops: forever,
  'loops-after': () => {
    setTimeout(forever, 0);
    return answer;
  },
  'blocks-and-answers': () => {
    spin(400);
    return answer;
  },
  heeds: async ({ signal }) => {
    await aborted(signal);
    throw signal.reason as Error;
  },
  swallows: async ({ signal }) => {
    await aborted(signal);
    return answer;
  },
  sleeps: async () => await new Promise(() => setInterval(() => undefined, 1000)),
  artifacts: ({ artifactsDir }) => {
    if (artifactsDir !== null) writeFileSync(join(artifactsDir, 'note.txt'), 'kept');
    console.log('working on it');
    return answer;
  },
  chats: (ctx) => {
    for (let line = 1; line <= 20; line += 1) console.log(`${named(ctx, 'who')} ${line}`);
    return answer;
  },
  'no-folder': ({ artifactsDir }) => [{ role: 'assistant', content: String(artifactsDir) }],
  'leaves-timer': () => {
    setInterval(() => undefined, 1000);
    return [{ role: 'assistant', content: String(++served) }];
  },
  variables: () => [
    {
      role: 'assistant',
      content: JSON.stringify([process.env['OWN'], process.env['UNSET'], process.env['PATH']]),
    },
  ],
  counts: () => [{ role: 'assistant', content: String(++served) }],
  asks: async ({ model, signal }) => {
    const answer = await fetch(`${model?.baseUrl}/chat/completions`, { method: 'POST', signal });
    await answer.json();
    return [{ role: 'assistant', content: String(++served) }];
  },
};
let served = 0;

export class Workflow implements AgentWorkflow {
  readonly #config: unknown;

  constructor(config: unknown) {
    this.#config = config;
    if ((config as { readonly name?: string }).name === 'broken') throw new Error('no such model');
  }

  async run(ctx: WorkflowContext): Promise<WorkflowAnswer> {
    const act = workflows[named(ctx, 'act') ?? 'list'];
    if (act === undefined || this.#config === undefined) throw new Error('no such act');
    return (await act(ctx)) as WorkflowAnswer;
  }
}

const graders: Readonly<Record<string, (ctx: GraderContext) => unknown>> = {
  seven: ({ setReward, sample }) => {
    setReward(0.7);
    sample.metrics['checked'] = true;
  },
  zero: ({ setReward }) => setReward(0),
  label: ({ setReward, label, sample }) =>
    setReward(label === 'yes' && sample.label === 'yes' ? 1 : 0),
  nan: ({ setReward }) => setReward(NaN),
  'nan-assigned': ({ sample }) => {
    sample.reward = -Infinity;
  },
  text: ({ sample }) => {
    (sample as { reward: unknown }).reward = '1';
  },
  none: () => 0.5,
  removes: ({ sample }) => {
    sample.removeSample = true;
  },
  unsayable: ({ setReward, sample }) => {
    setReward(1);
    const metric: Record<string, unknown> = {};
    metric['self'] = metric;
    sample.metrics['loop'] = metric;
  },
  throws: ({ setReward }) => {
    setReward(1);
    throw new Error('the judge is not there');
  },
  loops: forever,
  swallows: async ({ signal, setReward }) => {
    await aborted(signal);
    setReward(1);
  },
  exits: () => process.exit(0),
};

export class TestGrader implements Grader {
  async grade(ctx: GraderContext): Promise<void> {
    await graders[named(ctx, 'grade') ?? 'seven']?.(ctx);
  }
}

export const notAClass = 1;
export class NoMethod {
  readonly name = 'none';
}
