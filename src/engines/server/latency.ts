import { RolloutError } from '../../core/errors.ts';

/** How long something takes: always the same, or a Pareto law with its long tail, cut at `capMs`. */
export type LatencyLaw =
  | { readonly kind: 'none' }
  | { readonly kind: 'constant'; readonly ms: number }
  | {
      readonly kind: 'pareto';
      readonly scaleMs: number;
      readonly alpha: number;
      readonly capMs: number;
    };

export const noLatency: LatencyLaw = { kind: 'none' };

/** `constant:MS` or `pareto:SCALE_MS,ALPHA[,CAP_MS]`; CONFIG_INVALID for anything else. */
export function parseLatency(text: string, field: string): LatencyLaw {
  const [kind, list = ''] = text.split(':', 2);
  const numbers = list.split(',').map((part) => (part.trim() === '' ? Number.NaN : Number(part)));
  const [first = Number.NaN, second = Number.NaN, third = Infinity] = numbers;
  if (kind === 'constant' && numbers.length === 1 && first >= 0 && Number.isFinite(first))
    return first === 0 ? noLatency : { kind: 'constant', ms: first };
  if (kind === 'pareto' && numbers.length <= 3 && first > 0 && second > 0 && third >= first)
    return { kind: 'pareto', scaleMs: first, alpha: second, capMs: third };
  throw new RolloutError('CONFIG_INVALID', `${JSON.stringify(text)} is not a latency law`, {
    phase: 'config',
    field,
    remedy: 'Give constant:MS or pareto:SCALE_MS,ALPHA[,CAP_MS], for example pareto:200,1.5,30000.',
  });
}

export function sampleLatency(law: LatencyLaw, random: () => number): number {
  switch (law.kind) {
    case 'none':
      return 0;
    case 'constant':
      return law.ms;
    case 'pareto':
      return Math.min(law.capMs, law.scaleMs * (1 - random()) ** (-1 / law.alpha));
  }
}
