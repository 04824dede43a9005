/** The gauges of vLLM's `/metrics` that say how loaded it is. Each data-parallel rank has lines of its own. */
import type { EngineLoad } from '../engine.ts';

/** null = the text has no gauge of vLLM's scheduler. */
export function loadOfMetrics(text: string): EngineLoad | null {
  const running = gauge(text, 'vllm:num_requests_running');
  const waiting = gauge(text, 'vllm:num_requests_waiting');
  if (running.length === 0 || waiting.length === 0) return null;
  const use = [
    ...gauge(text, 'vllm:kv_cache_usage_perc'),
    // Its name before vLLM's second engine.
    ...gauge(text, 'vllm:gpu_cache_usage_perc'),
  ];
  return {
    runningRequests: sum(running),
    waitingRequests: sum(waiting),
    // The fullest rank decides whether more fits. The metric is a share of one in spite of its name.
    kvUse: use.length === 0 ? null : Math.max(...use),
  };
}

function gauge(text: string, name: string): readonly number[] {
  return (
    text
      .split('\n')
      .filter((line) => line.startsWith(`${name}{`) || line.startsWith(`${name} `))
      // Label values may hold spaces and braces: the value is what stands last.
      .map((line) => Number(line.trimEnd().split(' ').at(-1)))
      .filter((value) => Number.isFinite(value))
  );
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
