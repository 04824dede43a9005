import { z } from 'zod';
import { laxNumber, nullable } from '../lax.ts';
import { networkFields, phaseNetworkProblems } from './network-fields.ts';
import { crossCheck, table, user } from './table.ts';

/** `[agent]` and `[steps.agent]`. No `timeout_sec` = unlimited, or as the task says. */
export const agentTable = table(
  z
    .object({ timeout_sec: nullable(laxNumber), user: nullable(user), ...networkFields })
    .check(crossCheck(phaseNetworkProblems)),
);
export type AgentTable = z.output<typeof agentTable>;
