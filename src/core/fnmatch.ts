/**
 * Shell patterns as Python's fnmatch reads them: `*` and `?` also match `/`, `[…]` and `[!…]` are sets, everything else is literal.
 * Case matters.
 */
export function fnmatch(name: string, pattern: string): boolean {
  return fnmatchRegExp(pattern).test(name);
}

export function fnmatchRegExp(pattern: string): RegExp {
  let source = '';
  for (let at = 0; at < pattern.length; at += 1) {
    const character = pattern.charAt(at);
    if (character === '*') {
      while (pattern.charAt(at + 1) === '*') at += 1; // runs of stars would backtrack without bound
      source += '[^]*';
    } else if (character === '?') source += '[^]';
    else if (character === '[') {
      const set = setAt(pattern, at);
      source += set === null ? '\\[' : set.source;
      if (set !== null) at = set.end;
    } else source += character.replace(/[\\^$.*+?()[\]{}|/]/u, '\\$&');
  }
  return new RegExp(`^${source}$`, 'u');
}

/** The set that begins at `[`; null when it is never closed, then `[` is literal. */
function setAt(pattern: string, start: number): { source: string; end: number } | null {
  const isNegated = pattern.charAt(start + 1) === '!';
  const first = start + (isNegated ? 2 : 1);
  const end = pattern.indexOf(']', first + 1); // a `]` in first place belongs to the set
  if (end === -1) return null;
  const members = pattern.slice(first, end).replaceAll(/[\\\][&~|^]/gu, '\\$&');
  const isReversed = /([^])-([^])/u.exec(members);
  if (isReversed?.[1] !== undefined && isReversed[2] !== undefined && isReversed[1] > isReversed[2])
    return { source: isNegated ? '[^]' : '[]', end };
  return { source: `[${isNegated ? '^' : ''}${members}]`, end };
}
