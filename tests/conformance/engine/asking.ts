import { randomUUID } from 'node:crypto';
import type { GenerateInput, GenerateRequest } from '../../../src/engines/engine.ts';
import { collect, type ModelPart, type ModelResult } from '../../../src/engines/model-call.ts';
import type { EngineBench } from './adapter.ts';

export function ask(text: string, overrides: Partial<GenerateRequest> = {}): GenerateRequest {
  return {
    requestId: randomUUID(),
    model: null,
    input: { kind: 'messages', messages: [{ role: 'user', content: text }] },
    sampling: { temperature: 0, maxTokens: 4000 },
    isStreaming: false,
    wantsTokens: true,
    ...overrides,
  };
}

export async function answer(
  { engine, signal }: EngineBench,
  request: GenerateRequest,
): Promise<ModelResult> {
  return await collect(await engine.generate(request, signal));
}

export async function parts(
  { engine, signal }: EngineBench,
  request: GenerateRequest,
): Promise<readonly ModelPart[]> {
  const all: ModelPart[] = [];
  for await (const part of await engine.generate(request, signal)) all.push(part);
  return all;
}

/** The ids of a conversation with this message, which is never sent: those of another one, with its text exchanged. */
export async function tokensOf(bench: EngineBench, text: string): Promise<GenerateInput> {
  const { engine, signal } = bench;
  const other = 'SAY nothing';
  const request = ask(other);
  await answer(bench, request);
  const { prompt_ids: ids } = await bench.logged(request.requestId);
  const inner = await engine.tokenize(other, signal);
  const at = ids.findIndex((_, index) => inner.every((id, step) => ids[index + step] === id));
  if (at < 0) throw new Error('the prompt does not hold the ids of its text');
  const wanted = await engine.tokenize(text, signal);
  return {
    kind: 'tokens',
    ids: [...ids.slice(0, at), ...wanted, ...ids.slice(at + inner.length)],
  };
}

/** Of one case, every way a client can be asked: messages, and ids where it takes them. */
export async function inputsOf(
  bench: EngineBench,
  text: string,
): Promise<readonly GenerateInput[]> {
  const { input } = ask(text);
  return bench.engine.capabilities.tokenInput ? [input, await tokensOf(bench, text)] : [input];
}
