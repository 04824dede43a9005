/**
 * Negative controls of the engine suite: a client that is broken in one way fails the case that is about it, and only the break is to blame: the
 * same case passes without it.
 */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { RolloutError } from '../../src/core/errors.ts';
import { never } from '../../src/core/linked-abort.ts';
import { changedEngine } from '../../src/engines/changed-engine.ts';
import type { Engine } from '../../src/engines/engine.ts';
import type { ModelCall, ModelPart, ModelResult } from '../../src/engines/model-call.ts';
import type { EngineAdapter } from './engine/adapter.ts';
import { engineAdapters } from './engine/adapters.ts';
import { runEngineCase } from './engine/bench.ts';
import { engineCases } from './engine/cases/all.ts';
import { EngineProcess } from './engine/engine-process.ts';

type Break = (engine: Engine) => Partial<Engine>;

async function* mapped(
  call: ModelCall,
  change: (part: ModelPart) => readonly ModelPart[] | Promise<readonly ModelPart[]>,
): AsyncGenerator<ModelPart> {
  for await (const part of call) yield* await change(part);
}

const parts =
  (
    change: (
      part: ModelPart,
      engine: Engine,
    ) => readonly ModelPart[] | Promise<readonly ModelPart[]>,
  ): Break =>
  (engine) => ({
    generate: async (request, signal) => {
      const call = await engine.generate(request, signal);
      const read = mapped(call, (part) => change(part, engine));
      return { requestId: call.requestId, [Symbol.asyncIterator]: () => read };
    },
  });

const results = (
  change: (result: ModelResult, engine: Engine) => Promise<ModelResult> | ModelResult,
) =>
  parts(async (part, engine) =>
    part.type === 'end' ? [{ type: 'end', result: await change(part.result, engine) }] : [part],
  );

const rows: readonly (readonly [string, readonly string[], Break])[] = [
  [
    'a client that decodes and encodes again',
    ['tokens.whole', 'tokens.stream'],
    results(async (result, engine) => ({
      ...result,
      outputIds: [
        ...(await engine.tokenize(result.text, never)),
        ...(result.outputIds?.slice(-1) ?? []),
      ],
    })),
  ],
  [
    'a client that rounds log-probabilities',
    ['tokens.whole'],
    results((result) => ({
      ...result,
      logprobs: result.logprobs?.map((logprob) => Number(logprob.toFixed(6))) ?? null,
    })),
  ],
  [
    'a client that says a delta twice',
    ['text.stream'],
    parts((part) => (part.type === 'text-delta' ? [part, part] : [part])),
  ],
  ['a client that drops the last delta', ['text.stream'], parts(withoutLastDelta())],
  [
    'a client that calls every end a stop',
    ['finish.length', 'abort.all'],
    results((result) => ({ ...result, finishReason: 'stop' })),
  ],
  ['an abort that only pretends', ['abort.by-id'], () => ({ abort: () => Promise.resolve() })],
  [
    'an abort of all that only pretends',
    ['abort.all'],
    () => ({ abortAll: async () => undefined }),
  ],
  ['a pause that only pretends', ['pause'], () => ({ pause: () => Promise.resolve() })],
  [
    'a client that is deaf to signals',
    ['signal'],
    (engine) => ({ generate: (request) => engine.generate(request, never) }),
  ],
  ['a client that is always healthy', ['health'], (engine) => ({ health: alwaysHealthy(engine) })],
  [
    'a client that knows one error only',
    ['fault.overflow', 'fault.503', 'fault.malformed', 'unauthorized'],
    (engine) => ({
      generate: async (request, signal) => {
        const failed = (): RolloutError =>
          new RolloutError('ENGINE_UNAVAILABLE', `failed: ${request.requestId}`, {
            phase: 'model-call',
          });
        const call = await engine.generate(request, signal).catch(() => Promise.reject(failed()));
        const read = async function* (): AsyncGenerator<ModelPart> {
          try {
            yield* call;
          } catch {
            throw failed();
          }
        };
        return { requestId: call.requestId, [Symbol.asyncIterator]: read };
      },
    }),
  ],
  ['a destroy that lets calls run', ['destroy'], () => ({ destroy: () => Promise.resolve() })],
];

function withoutLastDelta(): (part: ModelPart) => readonly ModelPart[] {
  let held: ModelPart | null = null;
  return (part) => {
    if (part.type === 'end') held = null;
    if (part.type !== 'text-delta') return [part];
    const before = held;
    held = part;
    return before === null ? [] : [before];
  };
}

function alwaysHealthy(engine: Engine): Engine['health'] {
  return async (signal) => ({ ...(await engine.health(signal)), isHealthy: true });
}

describe('negative controls of the engine suite', { concurrency: 1 }, () => {
  const adapter = engineAdapters[0]!;
  let server: EngineProcess | null = null;
  before(async () => (server = await EngineProcess.start(adapter.dialect)));
  after(async () => await server?.[Symbol.asyncDispose]());

  const outcome = async (id: string, run: EngineAdapter): Promise<'passed' | 'failed'> => {
    const testCase = engineCases.find((each) => each.id === id);
    assert.ok(testCase && server, `no case ${id}`);
    try {
      const limit = run === adapter ? {} : { limitMs: 1_500 };
      await runEngineCase(testCase, { adapter: run, server, ...limit });
      return 'passed';
    } catch {
      return 'failed';
    }
  };

  for (const [what, caseIds, breaking] of rows)
    for (const id of caseIds)
      test(`${what} fails ${id}`, async () => {
        const wrap = (engine: Engine): Engine => changedEngine(engine, breaking(engine));
        assert.equal(await outcome(id, { ...adapter, wrap }), 'failed');
        assert.equal(await outcome(id, adapter), 'passed');
      });
});
