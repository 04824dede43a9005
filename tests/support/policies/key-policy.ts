/** A policy for the mock engine: looks through the variables of its terminal for a key of the model, then says twice that it is done. */
const look = `env | grep VISIBLE; echo "keys: $(cat /proc/*/environ 2>/dev/null | tr '\\0' '\\n' | grep -c '^OPENAI_')"\n`;

export default function keyPolicy({ turn }: { readonly turn: number }): {
  readonly content: string;
} {
  const content = JSON.stringify({
    analysis: 'looking',
    plan: 'look',
    commands: turn === 0 ? [{ keystrokes: look, duration: 0.5 }] : [],
    task_complete: turn > 0,
  });
  return { content };
}
