import type { Policy } from '../policy.ts';

/** Says the last message again. */
export const echo: Policy = ({ messages }) => {
  const content = messages.at(-1)?.content ?? '';
  if (typeof content === 'string') return { content };
  return { content: content.map(({ text }) => text ?? '').join('') };
};
