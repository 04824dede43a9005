/** A policy for the mock engine: asks the shell in the sandbox for its variables, then waits a turn, then says twice that it is done. */
export default function variablesPolicy({ turn }: { readonly turn: number }): {
  readonly content: string;
} {
  const keystrokes =
    'echo "until ${SLIPWAY_DEADLINE:-none}, ${OPENAI_API_KEY:-no key}, ${OPENAI_BASE_URL:-no address}."\n';
  const content = JSON.stringify({
    analysis: 'looking',
    plan: 'to look',
    commands: turn === 0 ? [{ keystrokes, duration: 1 }] : [],
    task_complete: turn > 1,
  });
  return { content };
}
