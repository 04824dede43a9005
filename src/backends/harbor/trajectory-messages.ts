/** The conversation of an ATIF document as chat messages, with tool turns, observations and reasoning. */
type Document = Readonly<Record<string, unknown>>;

export function trajectoryMessages(document: Document): readonly Document[] {
  return listOf(document['steps']).flatMap(messagesOf);
}

function messagesOf(step: Document): readonly Document[] {
  const content = step['message'] ?? '';
  if (step['source'] !== 'agent')
    return [{ role: step['source'] === 'user' ? 'user' : 'system', content }];
  const calls = listOf(step['tool_calls']);
  const reasoning = step['reasoning_content'] ?? null;
  const message = {
    ...{ role: 'assistant', content },
    ...(reasoning !== null && { reasoning_content: reasoning }),
    ...(calls.length > 0 && { tool_calls: calls.map(toolCall) }),
  };
  const observation = step['observation'];
  const results =
    typeof observation === 'object' && observation !== null
      ? listOf((observation as Document)['results'])
      : [];
  return [message, ...results.map((result, index) => answer(result, calls[index] ?? null))];
}

function toolCall(call: Document): Document {
  return {
    id: call['tool_call_id'],
    type: 'function',
    function: { name: call['function_name'], arguments: JSON.stringify(call['arguments'] ?? {}) },
  };
}

/** Of an agent without tool calls, an observation is what it is told next. */
function answer(result: Document, call: Document | null): Document {
  const id = result['source_call_id'] ?? call?.['tool_call_id'] ?? null;
  const content = result['content'] ?? null;
  return id === null ? { role: 'user', content } : { role: 'tool', tool_call_id: id, content };
}

function listOf(value: unknown): readonly Document[] {
  return Array.isArray(value)
    ? value.filter((item): item is Document => typeof item === 'object' && item !== null)
    : [];
}
