/** A policy for `slipway engine --policy FILE`: a model that adds two numbers with the shell and reads the sum from what it is shown. */

/** @param {{ messages: readonly { role: string, content: unknown }[] }} request */
export default function policy({ messages }) {
  const shown = messages.filter(({ role }) => role === 'user').map((one) => String(one.content));
  const [task = '', output] = shown;
  const [, a, b] = /(\d+) \+ (\d+)/.exec(task) ?? [];
  if (output === undefined) return { content: `\`\`\`sh\necho $((${a} + ${b}))\n\`\`\`` };
  return { content: `The answer is ${output.trim().split('\n').at(-1)}` };
}
