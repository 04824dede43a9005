/**
 * Which outside images a Dockerfile builds upon: those of `FROM` and of `COPY --from`, with the defaults of the global `ARG`s filled
 * in. Stages of the file itself and `scratch` are left out, and so is a name that stays unknown.
 */
export function dockerfileBases(text: string): readonly string[] {
  const globals = new Map<string, string>();
  const stages = new Set<string>();
  const bases = new Set<string>();
  let stageCount = 0;
  const add = (name: string | null): void => {
    if (name === null || name === '' || name === 'scratch' || stages.has(name.toLowerCase()))
      return;
    bases.add(name);
  };
  for (const { keyword, words } of instructions(text)) {
    if (keyword === 'ARG' && stageCount === 0)
      for (const word of words) {
        const equals = word.indexOf('=');
        const value = equals === -1 ? null : expand(unquote(word.slice(equals + 1)), globals);
        if (value !== null) globals.set(word.slice(0, equals), value);
      }
    else if (keyword === 'FROM') {
      const [image = '', as, stage] = words.filter((word) => !word.startsWith('--'));
      add(expand(unquote(image), globals));
      if (as?.toUpperCase() === 'AS' && stage !== undefined) stages.add(stage.toLowerCase());
      stages.add(String(stageCount));
      stageCount += 1;
    } else if (keyword === 'COPY' || keyword === 'RUN')
      for (const flag of words.filter((word) => word.startsWith('--'))) {
        const from = /^--(?:from=|mount=(?:.*,)?from=)([^,]+)/.exec(flag)?.[1];
        if (from !== undefined) add(expand(unquote(from), globals));
      }
  }
  return [...bases];
}

interface Instruction {
  readonly keyword: string;
  readonly words: readonly string[];
}

/** Instructions with comments removed and continued lines joined. Here-documents are skipped over. */
function* instructions(text: string): Generator<Instruction> {
  const escape = /^#\s*escape\s*=\s*`/im.test(text.split('\n', 4).join('\n')) ? '`' : '\\';
  const lines = text.split(/\r?\n/);
  for (let at = 0; at < lines.length; at += 1) {
    let line = lines[at]?.trim() ?? '';
    if (line === '' || line.startsWith('#')) continue;
    while (line.endsWith(escape) && at + 1 < lines.length) {
      at += 1;
      const next = lines[at]?.trim() ?? '';
      if (!next.startsWith('#') && next !== '') line = `${line.slice(0, -1)} ${next}`;
    }
    const [keyword = '', ...words] = line.split(/\s+/);
    yield { keyword: keyword.toUpperCase(), words };
    for (const [, dash, , name] of line.matchAll(/<<(-?)(["']?)(\w+)\2/g))
      if (/^(?:RUN|COPY|ADD)$/i.test(keyword))
        at = endOfHereDocument(lines, at, { name: name ?? '', mayIndent: dash === '-' });
  }
}

function endOfHereDocument(
  lines: readonly string[],
  start: number,
  document: { readonly name: string; readonly mayIndent: boolean },
): number {
  for (let at = start + 1; at < lines.length; at += 1) {
    const line = lines[at] ?? '';
    if ((document.mayIndent ? line.replace(/^\t+/, '') : line) === document.name) return at;
  }
  return lines.length;
}

/** `$NAME`, `${NAME}`, `${NAME:-default}` and `${NAME:+other}`; null when a name has no value. */
function expand(word: string, values: ReadonlyMap<string, string>): string | null {
  const unknown: string[] = [];
  const expanded = word.replaceAll(
    /\$(?:\{(\w+)(?::([-+])([^}]*))?\}|(\w+))/g,
    (
      _all,
      braced: string | undefined,
      operator: string | undefined,
      other: string,
      bare: string | undefined,
    ) => {
      const value = values.get(braced ?? bare ?? '') ?? '';
      if (operator === '-') return value === '' ? other : value;
      if (operator === '+') return value === '' ? '' : other;
      if (value === '') unknown.push(word);
      return value;
    },
  );
  return unknown.length === 0 ? expanded : null;
}

function unquote(word: string): string {
  return word.replace(/^(["'])(.*)\1$/, '$2');
}
