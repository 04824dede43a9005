import { it } from 'node:test';
import { assertFixedSeries } from './fixed-series.ts';

it('a server has as many series after 1,000 rollouts as after 10', () => assertFixedSeries(1_000));
