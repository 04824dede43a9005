/** `npm run prove -- series`: the metrics of a server have as many series after 10,000 rollouts of all kinds as after 10. */
import { assertFixedSeries } from '../telemetry/fixed-series.ts';

await assertFixedSeries(10_000);
console.log('after 10,000 rollouts the metrics have the series that they had after 10');
