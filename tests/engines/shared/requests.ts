import { openEngine } from '../../../src/engines/registry.ts';
import type {
  Engine,
  EngineKind,
  EngineOptions,
  GenerateRequest,
} from '../../../src/engines/engine.ts';
import type { ModelCall, ModelPart, ModelResult } from '../../../src/engines/model-call.ts';
import { collect } from '../../../src/engines/model-call.ts';
import { never } from '../../../src/core/linked-abort.ts';
import { FakeHost, type Answer } from './fake-host.ts';

let count = 0;

export function chatRequest(overrides: Partial<GenerateRequest> = {}): GenerateRequest {
  count += 1;
  return {
    requestId: `request-${count}`,
    model: 'small',
    input: { kind: 'messages', messages: [{ role: 'user', content: 'Hello' }] },
    sampling: {},
    isStreaming: false,
    wantsTokens: true,
    ...overrides,
  };
}

/** Runs `work` with a client on a host that gives `answer`, then closes both. */
export async function withEngine<T>(
  kind: EngineKind,
  answer: Answer,
  work: (engine: Engine, host: FakeHost) => Promise<T>,
  options: Partial<EngineOptions> = {},
): Promise<T> {
  await using host = await FakeHost.open(answer);
  const engine = await openEngine({ kind, baseUrl: host.url, apiKey: null, ...options });
  try {
    return await work(engine, host);
  } finally {
    await engine.destroy(new Error('the test is over'));
  }
}

export async function resultOf(engine: Engine, request: GenerateRequest): Promise<ModelResult> {
  return await collect(await engine.generate(request, never));
}

export async function partsOf(call: ModelCall): Promise<readonly ModelPart[]> {
  const parts: ModelPart[] = [];
  for await (const part of call) parts.push(part);
  return parts;
}
