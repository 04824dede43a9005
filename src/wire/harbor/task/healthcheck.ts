import { z } from 'zod';
import { laxInteger, laxNumber } from '../lax.ts';
import { table } from './table.ts';

/** `[environment.healthcheck]` and `[steps.healthcheck]`. */
export const healthcheckTable = table(
  z.object({
    command: z.string(),
    interval_sec: laxNumber.default(5),
    timeout_sec: laxNumber.default(30),
    start_period_sec: laxNumber.default(0),
    start_interval_sec: laxNumber.default(5),
    retries: laxInteger.default(3),
  }),
);
export type HealthcheckTable = z.output<typeof healthcheckTable>;
