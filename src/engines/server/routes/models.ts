import type { FastifyInstance } from 'fastify';
import type { EngineParts } from '../engine-parts.ts';
import { Refusal } from '../refusal.ts';

export function addModelRoutes(app: FastifyInstance, parts: EngineParts): void {
  const card = (): object => ({
    id: parts.model.name,
    object: 'model',
    created: 0,
    owned_by: 'slipway',
    root: parts.model.name,
    parent: null,
    max_model_len: parts.contextTokens,
  });
  app.get('/v1/models', () => ({ object: 'list', data: [card()] }));
  app.get<{ Params: { '*': string } }>('/v1/models/*', ({ params }) => {
    if (params['*'] !== parts.model.name) throw unknownModel(params['*']);
    return card();
  });
}

/** SGLang serves one model under any name; the others know their own. */
export function checkModel(name: string | null, { dialect, model }: EngineParts): void {
  if (name === null || name === model.name) return;
  if (dialect === 'vllm' || dialect === 'openai') throw unknownModel(name);
}

function unknownModel(name: string): Refusal {
  return new Refusal(404, `The model \`${name}\` does not exist.`);
}
