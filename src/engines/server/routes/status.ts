/** Health, identity, load and metrics, in the words of both engines. */
import type { FastifyInstance } from 'fastify';
import type { EngineParts } from '../engine-parts.ts';

export function addStatusRoutes(app: FastifyInstance, parts: EngineParts): void {
  const { model, scheduler, contextTokens, maxRunning, clock } = parts;
  const { kv } = scheduler;

  for (const url of ['/health', '/health_generate', '/ping'])
    app.get(url, async (_, reply) => {
      await reply.status(200).send();
    });

  const identity = (): object => ({
    model_path: model.name,
    served_model_name: model.name,
    tokenizer_path: model.name,
    is_generation: true,
    weight_version: scheduler.weightVersion,
    max_model_len: contextTokens,
  });
  for (const url of ['/model_info', '/get_model_info']) app.get(url, identity);
  for (const url of ['/server_info', '/get_server_info'])
    app.get(url, () => ({
      ...identity(),
      context_length: contextTokens,
      max_running_requests: maxRunning,
      max_total_num_tokens: kv.capacityTokens,
      is_paused: scheduler.isPaused,
    }));
  app.get('/version', () => ({ version: 'slipway' }));

  const use = (): number => Math.min(1, kv.heldTokens / kv.capacityTokens);
  const core = (): object => ({
    dp_rank: 0,
    num_running_reqs: scheduler.runningCount,
    num_waiting_reqs: scheduler.waitingCount,
    num_total_reqs: scheduler.runningCount + scheduler.waitingCount,
    num_used_tokens: kv.heldTokens,
    num_cached_tokens: kv.cachedTokens,
    max_total_num_tokens: kv.capacityTokens,
    token_usage: use(),
    max_running_requests: maxRunning,
    cache_hit_rate: hitRate(),
  });
  const hitRate = (): number =>
    scheduler.totals.promptTokens === 0
      ? 0
      : scheduler.totals.cachedTokens / scheduler.totals.promptTokens;
  app.get('/v1/loads', () => ({
    timestamp: clock.now().toISOString(),
    dp_rank_count: 1,
    loads: [core()],
    aggregate: {
      total_running_reqs: scheduler.runningCount,
      total_waiting_reqs: scheduler.waitingCount,
      total_reqs: scheduler.runningCount + scheduler.waitingCount,
      avg_token_usage: use(),
    },
  }));
  app.get('/get_load', () => [
    {
      dp_rank: 0,
      num_reqs: scheduler.runningCount + scheduler.waitingCount,
      num_waiting_reqs: scheduler.waitingCount,
      num_tokens: kv.heldTokens,
    },
  ]);

  app.get('/metrics', async (_, reply) => {
    const { promptTokens, outputTokens, cachedTokens } = scheduler.totals;
    const rows: readonly (readonly [name: string, kind: 'gauge' | 'counter', value: number])[] = [
      ['vllm:num_requests_running', 'gauge', scheduler.runningCount],
      ['vllm:num_requests_waiting', 'gauge', scheduler.waitingCount],
      ['vllm:kv_cache_usage_perc', 'gauge', use()],
      ['vllm:prompt_tokens_total', 'counter', promptTokens],
      ['vllm:generation_tokens_total', 'counter', outputTokens],
      ['vllm:prefix_cache_queries_total', 'counter', promptTokens],
      ['vllm:prefix_cache_hits_total', 'counter', cachedTokens],
      ['sglang:num_running_reqs', 'gauge', scheduler.runningCount],
      ['sglang:num_queue_reqs', 'gauge', scheduler.waitingCount],
      ['sglang:token_usage', 'gauge', use()],
    ];
    const label = `{model_name=${JSON.stringify(model.name)}}`;
    const text = rows.map(
      ([name, kind, value]) => `# TYPE ${name} ${kind}\n${name}${label} ${value}\n`,
    );
    await reply.type('text/plain; version=0.0.4; charset=utf-8').send(text.join(''));
  });
}
