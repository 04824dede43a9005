/**
 * The bytes that tmux writes in control mode: lines. A reply is a block from `%begin TIME NUMBER FLAGS` to `%end` or `%error` with the same
 * three words; the lines between are the command's output as it is. Everything else that begins with `%` is a notice. Names, output and
 * replies hold what programs of the sandbox wrote: nothing here trusts them beyond these rules.
 */
import { TailBuffer } from './tail-buffer.ts';
import { maxReplyBytes } from './tmux-commands.ts';

export interface ControlBlock {
  /** Whether it answers a command of this client; the others answer the attaching itself. */
  readonly isOurs: boolean;
  readonly isError: boolean;
  /** Its lines, each with its end; of a long reply the last `maxReplyBytes`. */
  readonly text: Buffer;
}

export interface ControlEvents {
  readonly onBlock: (block: ControlBlock) => void;
  /** Output of a pane, unescaped. */
  readonly onOutput: (pane: string, bytes: Buffer) => void;
  /** Any other notice: `exit`, `pause`, `layout-change`, … */
  readonly onNotice: (name: string, rest: string) => void;
}

/** No line of a sound tmux comes near. */
const maxLineBytes = 4 * 1024 * 1024;

const lineFeed = 0x0a;
const lineEnd = Buffer.of(lineFeed);
const space = 0x20;
const percent = 0x25;
const backslash = 0x5c;
const zero = 0x30;

export class ControlReader {
  readonly #events: ControlEvents;
  #pending: Buffer[] = [];
  #pendingBytes = 0;
  #block: { readonly tag: string; readonly text: TailBuffer } | null = null;

  constructor(events: ControlEvents) {
    this.#events = events;
  }

  /** Throws when the bytes are not those of a sound tmux; the reader is then of no more use. */
  write(chunk: Buffer): void {
    let from = 0;
    for (;;) {
      const end = chunk.indexOf(lineFeed, from);
      if (end === -1) break;
      const rest = chunk.subarray(from, end);
      this.#line(this.#pending.length === 0 ? rest : Buffer.concat([...this.#pending, rest]));
      this.#pending = [];
      this.#pendingBytes = 0;
      from = end + 1;
    }
    if (from === chunk.length) return;
    this.#pending.push(chunk.subarray(from));
    this.#pendingBytes += chunk.length - from;
    if (this.#pendingBytes > maxLineBytes) throw new Error('tmux wrote a line without an end');
  }

  #line(line: Buffer): void {
    const block = this.#block;
    if (block !== null) {
      const end = line[0] === percent ? endOf(line) : null;
      if (end?.tag === block.tag) {
        this.#block = null;
        const isOurs = block.tag.endsWith(' 1');
        this.#events.onBlock({ isOurs, isError: end.isError, text: block.text.bytes() });
        return;
      }
      block.text.write(line);
      block.text.write(lineEnd);
      return;
    }
    if (line[0] !== percent) return; // a terminal's own noise around control mode
    this.#notice(line);
  }

  #notice(line: Buffer): void {
    const nameEnd = indexOrEnd(line, space, 1);
    const name = line.toString('latin1', 1, nameEnd);
    if (name === 'output') {
      const paneEnd = indexOrEnd(line, space, nameEnd + 1);
      this.#output(line.toString('latin1', nameEnd + 1, paneEnd), line.subarray(paneEnd + 1));
    } else if (name === 'extended-output') {
      const paneEnd = indexOrEnd(line, space, nameEnd + 1);
      const valueAt = line.indexOf(' : ', paneEnd);
      if (valueAt === -1) return;
      this.#output(line.toString('latin1', nameEnd + 1, paneEnd), line.subarray(valueAt + 3));
    } else if (name === 'begin') {
      this.#block = {
        tag: line.toString('latin1', nameEnd + 1),
        text: new TailBuffer(maxReplyBytes),
      };
    } else if (name === 'end' || name === 'error') {
      throw new Error('tmux ended a reply that it had not begun');
    } else this.#events.onNotice(name, line.toString('utf8', nameEnd + 1));
  }

  #output(pane: string, escaped: Buffer): void {
    this.#events.onOutput(pane, unescape(escaped));
  }
}

function endOf(line: Buffer): { readonly tag: string; readonly isError: boolean } | null {
  const [, word, tag = ''] =
    /^%(end|error) (\d+ \d+ \d+)$/.exec(line.toString('latin1', 0, 80)) ?? [];
  return word === undefined ? null : { tag, isError: word === 'error' };
}

/** Control characters and backslashes come as a backslash and three octal digits. */
export function unescape(escaped: Buffer): Buffer {
  let at = escaped.indexOf(backslash);
  if (at === -1) return escaped;
  const bytes = Buffer.allocUnsafe(escaped.length);
  let length = 0;
  let from = 0;
  for (; at !== -1; at = escaped.indexOf(backslash, from)) {
    length += escaped.copy(bytes, length, from, at);
    const value = octal(escaped, at + 1);
    bytes[length] = value ?? backslash;
    length += 1;
    from = at + (value === null ? 1 : 4);
  }
  length += escaped.copy(bytes, length, from);
  return bytes.subarray(0, length);
}

function octal(bytes: Buffer, at: number): number | null {
  let value = 0;
  for (let offset = 0; offset < 3; offset += 1) {
    const digit = (bytes[at + offset] ?? 0) - zero;
    if (digit < 0 || digit > 7) return null;
    value = value * 8 + digit;
  }
  return value <= 0xff ? value : null;
}

function indexOrEnd(line: Buffer, byte: number, from: number): number {
  const at = line.indexOf(byte, from);
  return at === -1 ? line.length : at;
}
