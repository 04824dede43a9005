/** How keys reach a pane, the same for both ways of talking to tmux. */
import { paneTarget, type TmuxCommand } from './tmux-commands.ts';

/** The longest command line, its own words included, that is sent as keys. */
export const maxKeysBytes = 16_000;

const prefix: TmuxCommand = ['send-keys', '-t', paneTarget, '--'];
const prefixBytes = Buffer.byteLength(prefix.join(' ')) + 3;

export type Typing =
  | { readonly kind: 'nothing' }
  | { readonly kind: 'keys'; readonly command: TmuxCommand }
  /** Too large for a command: it goes through a buffer of tmux, byte for byte. */
  | { readonly kind: 'paste'; readonly text: string };

/**
 * tmux itself tells names of keys (`C-c`, `Enter`) from text: only when they are the whole string. A NUL, which no command line can hold, is
 * the key that makes one.
 */
export function typingOf(keys: string): Typing {
  if (keys === '') return { kind: 'nothing' };
  if (Buffer.byteLength(keys) + prefixBytes > maxKeysBytes) return { kind: 'paste', text: keys };
  const words = keys
    .split('\0')
    .flatMap((text, index) => (index === 0 ? [text] : ['C-Space', text]));
  return { kind: 'keys', command: [...prefix, ...words.filter((word) => word !== '')] };
}
