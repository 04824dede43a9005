/**
 * MCP servers from a file for `--mcp-config`: a map `mcpServers` (`type` is the transport, a `command` implies stdio), a list
 * `mcp_servers`, or `environment.mcp_servers` as in a task file.
 */
import { RolloutError } from '../core/errors.ts';
import { readDocument } from './document.ts';
import { isFields, type Fields } from './fields.ts';

export async function readMcpFile(path: string): Promise<Fields[]> {
  const document = await readDocument(path, '--mcp-config');
  const environment = document['environment'];
  if (isFields(document['mcpServers']))
    return Object.entries(document['mcpServers']).map(([name, server]) => fromMap(name, server));
  for (const list of [
    document['mcp_servers'],
    isFields(environment) ? environment['mcp_servers'] : undefined,
  ])
    if (Array.isArray(list) && list.every(isFields)) return list;
  throw new RolloutError('CONFIG_INVALID', `${path}: names no MCP servers`, {
    phase: 'config',
    field: '--mcp-config',
    remedy: 'Write a map mcpServers or a list mcp_servers.',
  });
}

function fromMap(name: string, server: unknown): Fields {
  const { type, ...rest } = isFields(server) ? server : {};
  const transport =
    type ?? rest['transport'] ?? (rest['command'] === undefined ? undefined : 'stdio');
  return { ...rest, name, ...(transport === undefined ? {} : { transport }) };
}
