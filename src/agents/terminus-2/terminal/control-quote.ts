import type { TmuxCommand } from './tmux-commands.ts';

const named: Readonly<Record<string, string>> = { '\n': '\\n', '\r': '\\r', '\t': '\\t' };

/** One line of tmux's command language: every word in double quotes, so that nothing in it is expanded and no line break ends it. */
export function controlLine(command: TmuxCommand): string {
  const words = command.map((word) => `"${word.replaceAll(/[\\"$\p{Cc}]/gu, escaped)}"`);
  return `${words.join(' ')}\n`;
}

function escaped(character: string): string {
  if (/[\\"$]/.test(character)) return `\\${character}`;
  const code = character.codePointAt(0) ?? 0;
  // Those above 0x7f are two bytes each and pass as they are.
  if (code > 0x7f) return character;
  return named[character] ?? `\\${code.toString(8).padStart(3, '0')}`;
}
