import { RolloutError } from '../core/errors.ts';
import type { Engine, EngineKind, EngineOpener, EngineOptions } from './engine.ts';

/** Every dialect by name; its code is loaded when it is first asked for. */
const engines: ReadonlyMap<EngineKind, (options: EngineOptions) => Promise<Engine>> = new Map<
  EngineKind,
  (options: EngineOptions) => Promise<Engine>
>([
  [
    'sglang',
    async (options) => new (await import('./sglang/sglang-engine.ts')).SglangEngine(options),
  ],
  ['vllm', async (options) => new (await import('./vllm/vllm-engine.ts')).VllmEngine(options)],
  ['chat', async (options) => new (await import('./chat/chat-engine.ts')).ChatEngine(options)],
]);

export const openEngine: EngineOpener = async (options) => {
  const open = engines.get(options.kind);
  if (open !== undefined) return await open(options);
  throw new RolloutError('CONFIG_INVALID', `no engine is called ${JSON.stringify(options.kind)}`, {
    phase: 'config',
    field: 'engine.kind',
    remedy: `Use one of: ${[...engines.keys()].join(', ')}.`,
  });
};
