import type { TmuxCommand } from './tmux-commands.ts';

const named: Readonly<Record<string, string>> = { '\n': '\\n', '\r': '\\r', '\t': '\\t' };

/**
 * One line of tmux's command language: every word in double quotes, with escapes where those expand, a `~` at the beginning included. No line
 * break ends it. Several commands are run one after the other, up to the first that fails.
 */
export function controlLine(...commands: readonly TmuxCommand[]): string {
  const quoted = (word: string): string => `"${word.replaceAll(/[\\"$~\p{Cc}]/gu, escaped)}"`;
  return `${commands.map((command) => command.map(quoted).join(' ')).join(' ; ')}\n`;
}

function escaped(character: string): string {
  if (/[\\"$~]/.test(character)) return `\\${character}`;
  const code = character.codePointAt(0) ?? 0;
  // Those above 0x7f are two bytes each and pass as they are.
  if (code > 0x7f) return character;
  return named[character] ?? `\\${code.toString(8).padStart(3, '0')}`;
}
