/** A policy for the mock engine: does what the instruction names, in a way that does not end, or says at once that it is done. */
interface Request {
  readonly messages: readonly { readonly role: string; readonly content: unknown }[];
  /** Assistant messages so far. */
  readonly turn: number;
}

export default function hangPolicy({ messages, turn }: Request): { readonly content: string } {
  const [, kind = '', marker = ''] =
    /hang ([a-z-]+), marker (\d+)/.exec(JSON.stringify(messages)) ?? [];
  const lines: Readonly<Record<string, string>> = {
    'agent-sleeping': `sleep 1${marker}`,
    'agent-waiting-for-input': `bash -c 'read answer; : 1${marker}'`,
  };
  const line = turn === 0 ? lines[kind] : undefined;
  const content = JSON.stringify({
    analysis: `turn ${turn}`,
    plan: 'as I was told',
    commands: line === undefined ? [] : [{ keystrokes: `${line}\n`, duration: 60 }],
    ...(line === undefined && { task_complete: true }),
  });
  return { content };
}
