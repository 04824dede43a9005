/** The first version whose control mode can hold output back, so that a flood in the terminal stops nothing. */
const needed = [3, 2] as const;

/** `said` is what `tmux -V` prints: `tmux 3.3a`, `tmux next-3.5`, `tmux master`. */
export function hasControlMode(said: string): boolean {
  const [, major, minor] = /(\d+)\.(\d+)/.exec(said) ?? [];
  if (major === undefined) return /\bmaster\b/.test(said);
  return Number(major) > needed[0] || (Number(major) === needed[0] && Number(minor) >= needed[1]);
}
