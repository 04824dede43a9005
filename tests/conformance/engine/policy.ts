/**
 * The scripted model of the suite. The last message says what to reply: `SAY text`, `THINK thought|text`, `CALL name arguments`, `LONG count`,
 * `HANG` (never replies, until it is aborted).
 */
import type { Policy, PolicyReply } from '../../../src/engines/mock/policy.ts';

export const policy: Policy = async ({ messages }) => {
  const content = messages.at(-1)?.content;
  const text = typeof content === 'string' ? content : '';
  const at = text.indexOf(' ');
  const verb = at < 0 ? text : text.slice(0, at);
  const rest = at < 0 ? '' : text.slice(at + 1);
  if (verb === 'HANG') return await new Promise<PolicyReply>(() => undefined);
  if (verb === 'THINK') {
    const [reasoning = '', said = ''] = rest.split('|', 2);
    return { content: said, reasoning };
  }
  if (verb === 'CALL') {
    const [name = '', given = ''] = rest.split(' ', 2);
    return { content: '', toolCalls: [{ name, arguments: given }] };
  }
  if (verb === 'LONG')
    return { content: Array.from({ length: Number(rest) }, (_, index) => `w${index}`).join(' ') };
  return { content: verb === 'SAY' ? rest : text };
};
