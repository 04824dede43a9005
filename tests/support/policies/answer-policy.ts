/**
 * A policy for the mock engine: looks around, writes the answer that the instruction asks for, looks at it, says twice that it is done. The
 * instruction names the word, so that a task can be solved or missed on purpose.
 */
interface Request {
  readonly messages: readonly { readonly role: string; readonly content: unknown }[];
  /** Assistant messages so far. */
  readonly turn: number;
}

const steps = ['ls\n', 'mkdir -p /app && echo WORD > /app/answer\n', 'cat /app/answer\n'];

export default function answerPolicy({ messages, turn }: Request): { readonly content: string } {
  const [, word = 'nothing'] = /write the word (\w+)/.exec(JSON.stringify(messages)) ?? [];
  const keystrokes = steps[turn]?.replace('WORD', word);
  const content = JSON.stringify({
    analysis: `turn ${turn}`,
    plan: keystrokes === undefined ? 'to stop' : 'one command',
    commands: keystrokes === undefined ? [] : [{ keystrokes, duration: 0.1 }],
    ...(keystrokes === undefined && { task_complete: true }),
  });
  return { content };
}
