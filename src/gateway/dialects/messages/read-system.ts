/** Instructions: the `system` field and messages with the role `system`, which may change the tools besides. */
import type { ConversationItem, InputPart } from '../../items/conversation.ts';
import { RequestProblem } from '../dialect.ts';
import { blocksOf, type Block } from './blocks.ts';
import type { GivenTools } from './read-tools.ts';
import { blockSchemas, parsed } from './request-schema.ts';

/**
 * How the first block of some clients begins: it names the account that is billed, and differs from request to request, so that no prompt would be the
 * beginning of the next one. It is for the vendor and no instruction.
 */
const billingHeader = 'x-anthropic-billing-header:';

export function readSystem(
  content: unknown,
  at: string,
  tools: GivenTools,
): readonly ConversationItem[] {
  const parts = blocksOf(content, at).flatMap((block) => systemParts(block, tools));
  return parts.every((part) => part.type === 'text' && part.text.trim() === '')
    ? []
    : [{ kind: 'message', role: 'system', parts }];
}

function systemParts(block: Block, tools: GivenTools): readonly InputPart[] {
  const { type, fields, at } = block;
  switch (type) {
    case 'text': {
      const { text } = parsed(blockSchemas.text, fields, at);
      return text === '' || text.startsWith(billingHeader) ? [] : [{ type: 'text', text }];
    }
    case 'tool_addition':
    case 'tool_removal':
      return [{ type: 'text', text: changeOfTools(block, tools) }];
    default:
      throw new RequestProblem(`instructions are text, not ${JSON.stringify(type)}`, { field: at });
  }
}

/** Removed tools stay in the list, which stands before everything that was said while they were there. */
function changeOfTools({ type, fields, at }: Block, tools: GivenTools): string {
  const { tool } = parsed(blockSchemas.tool_change, fields, at);
  const definition = tool.definition ?? null;
  const name = tool.name ?? definition?.['name'] ?? tool.server_name ?? null;
  if (typeof name !== 'string')
    throw new RequestProblem('names no tool', { field: `${at}.tool.name` });
  if (type === 'tool_removal') return `The tool ${name} is not available from now on.`;
  if (definition !== null && !tools.has(name)) tools.add(definition, `${at}.tool.definition`);
  return `The tool ${name} is available from now on.`;
}
