import { existsSync, readFileSync } from 'node:fs';

/** CAP_SYS_NICE. */
const capability = 1n << 23n;

/** Why no session can be given precedence here; false = it can. */
export function whyNoPrecedence(): string | false {
  const why = 'needs CAP_SYS_NICE and autogroups';
  if (!existsSync('/proc/self/autogroup')) return why;
  const held = /^CapEff:\s*([0-9a-f]+)$/m.exec(readFileSync('/proc/self/status', 'utf8'))?.[1];
  return (BigInt(`0x${held ?? '0'}`) & capability) === 0n ? why : false;
}
