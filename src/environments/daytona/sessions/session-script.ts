/**
 * What a session is given to run. The sandbox's daemon writes output to a log line by line, which changes bytes that are no text and ends that are no line,
 * and it hands input on by lines. So both streams, and the input, pass as lines of base64, each of whole groups of four, so that every line is decoded alone.
 * When the program has ended, its shell writes a mark behind all output on both streams, on the first with the exit code: what children in the
 * background still hold open is not waited for. The first line of all tells the pid of the session's own shell. Needs `sh`, `dd` and `base64` in the image.
 */
import { shellQuote } from '../../shared/shell-quote.ts';

/** Ends the program's input. */
export const endOfInput = '.';

const encode =
  'slw_out() { while b=$(dd bs=65536 count=1 2>/dev/null | base64) && [ -n "$b" ]; do printf \'%s\\n\' "$b"; done; }';
const decode =
  'slw_in() { while IFS= read -r l; do case $l in .) break;; \'\') continue;; esac; printf %s "$l" | base64 -d || break; done; }';

/** @param mark random, letters and digits: nobody else may write it. */
export function sessionScript(argv: readonly string[], mark: string): string {
  const program = argv.map(shellQuote).join(' ');
  const marked = `{ ${program} 2>&8 8>&-; c=$?; printf '%s %s\\n' ${mark} "$c"; printf '%s\\n' ${mark} >&8; } 8>&2 2>/dev/null`;
  const apart = '4>&- 5>&- 6>&-';
  return [
    `( echo ":shell $$"; ${encode}; ${decode}`,
    `{ { { slw_in 2>/dev/null ${apart} | ${marked}; } 2>&1 >&4 ${apart} | slw_out >&6 ${apart}; } 4>&1 | slw_out >&5 5>&- 6>&-; } 5>&1 6>&2 )`,
  ].join('\n');
}

/** Bytes as lines of input, small enough for a shell to read. */
export function inputLines(bytes: Buffer): string {
  const lines: string[] = [];
  for (let at = 0; at < bytes.length; at += 12_288)
    lines.push(bytes.toString('base64', at, Math.min(at + 12_288, bytes.length)));
  return lines.map((line) => `${line}\n`).join('');
}
