/** The mistake that exactness guards against, on purpose: a client that keeps the text of a reply and makes its ids by encoding it again. */
import type { Engine, EngineOpener } from '../../src/engines/engine.ts';
import type { ModelCall, ModelPart } from '../../src/engines/model-call.ts';
import type { Vocabulary } from '../../src/engines/server/token-model.ts';

export function reEncoding(open: EngineOpener, vocabulary: Vocabulary): EngineOpener {
  return async (options) => {
    const engine = await open(options);
    const generate: Engine['generate'] = async (request, signal) =>
      spoiled(await engine.generate(request, signal), vocabulary);
    return new Proxy(engine, {
      get(target, name) {
        if (name === 'generate') return generate;
        const value: unknown = Reflect.get(target, name, target);
        return typeof value === 'function' ? (value.bind(target) as unknown) : value;
      },
    });
  };
}

function spoiled(call: ModelCall, vocabulary: Vocabulary): ModelCall {
  return {
    requestId: call.requestId,
    async *[Symbol.asyncIterator](): AsyncGenerator<ModelPart> {
      for await (const part of call) yield encodedAgain(part, vocabulary);
    },
  };
}

/** The end of an answer with ids made of its text; any other part as it is. */
export function encodedAgain(part: ModelPart, vocabulary: Vocabulary): ModelPart {
  if (part.type !== 'end' || part.result.outputIds === null) return part;
  const { outputIds, logprobs } = part.result;
  const text = vocabulary.decode(outputIds, { skipsSpecial: false });
  const ids = vocabulary.encode(text, { parsesSpecial: true });
  return {
    type: 'end',
    result: {
      ...part.result,
      outputIds: ids,
      logprobs: ids.map((_, index) => logprobs?.[index] ?? 0),
    },
  };
}
