import { z } from 'zod';
import { nullable } from '../lax.ts';
import { crossCheck, table, type CrossProblem, type PartlyChecked } from './table.ts';

const transport = z
  .enum(['stdio', 'sse', 'streamable-http', 'http'])
  .transform((name) => (name === 'http' ? 'streamable-http' : name));

/** An entry of `mcp_servers`; the transport `http` is a synonym of `streamable-http`. */
export const mcpServerTable = table(
  z
    .object({
      name: z.string(),
      transport: transport.default('sse'),
      url: nullable(z.string()),
      command: nullable(z.string()),
      args: z.array(z.string()).default([]),
    })
    .check(crossCheck(transportProblems)),
);

function transportProblems(fields: PartlyChecked): readonly CrossProblem[] {
  const { transport: name, url, command } = fields;
  if (name === 'stdio' && command === null)
    return [{ path: ['command'], message: 'is required for stdio' }];
  if ((name === 'sse' || name === 'streamable-http') && url === null)
    return [{ path: ['url'], message: 'is required for sse and streamable-http' }];
  return [];
}
