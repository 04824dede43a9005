/** The part of PostgREST's query language that readers of the registry use: select with embedded tables, eq and in, order, offset, limit. */

export type Row = Readonly<Record<string, unknown>>;

const maxRows = 1000;
const reserved = new Set(['select', 'order', 'offset', 'limit']);

/** Answers a query over rows whose embedded tables are nested objects. Like PostgREST it never gives more than 1,000 rows. */
export function query(rows: readonly Row[], parameters: URLSearchParams): readonly Row[] {
  const filters = [...parameters].filter(([name]) => !reserved.has(name));
  const kept = rows.filter((row) =>
    filters.every(([column, condition]) => holds(valueAt(row, column.split('.')), condition)),
  );
  const order = parameters.get('order');
  if (order !== null)
    kept.sort((one, other) => (String(one[order]) < String(other[order]) ? -1 : 1));
  const offset = Number(parameters.get('offset') ?? 0);
  const limit = Math.min(Number(parameters.get('limit') ?? maxRows), maxRows);
  const columns = parseSelect(parameters.get('select') ?? '*');
  return kept.slice(offset, offset + limit).map((row) => project(row, columns));
}

function valueAt(row: unknown, path: readonly string[]): unknown {
  let at = row;
  for (const part of path) at = (at as Row | null | undefined)?.[part];
  return at;
}

function holds(value: unknown, condition: string): boolean {
  if (condition.startsWith('eq.')) return String(value) === condition.slice(3);
  const list = /^in\.\((.*)\)$/.exec(condition)?.[1];
  if (list === undefined) throw new Error(`unsupported condition ${condition}`);
  return list.split(',').some((item) => item.replaceAll('"', '') === String(value));
}

interface Column {
  readonly name: string;
  readonly embedded: readonly Column[] | null;
}

/** `a,b:fk!inner(c,d(*))` → columns; `b` is what the answer calls the embedded table. */
function parseSelect(text: string): readonly Column[] {
  return splitTop(text).map((part) => {
    const open = part.indexOf('(');
    const head = open === -1 ? part : part.slice(0, open);
    const name = (head.split(':')[0] ?? head).replace(/!.*$/, '');
    return { name, embedded: open === -1 ? null : parseSelect(part.slice(open + 1, -1)) };
  });
}

function splitTop(text: string): readonly string[] {
  const parts: string[] = [];
  let depth = 0;
  let start = 0;
  for (let at = 0; at <= text.length; at += 1) {
    const character = text.charAt(at);
    if (character === '(') depth += 1;
    if (character === ')') depth -= 1;
    if (at < text.length && (character !== ',' || depth > 0)) continue;
    parts.push(text.slice(start, at));
    start = at + 1;
  }
  return parts;
}

function project(row: Row, columns: readonly Column[]): Row {
  const projected: Record<string, unknown> = {};
  for (const { name, embedded } of columns) {
    if (name === '*') {
      for (const [key, value] of Object.entries(row))
        if (typeof value !== 'object' || value === null) projected[key] = value;
    } else if (!(name in row)) throw new Error(`column ${name} does not exist`);
    else {
      const value = row[name];
      projected[name] =
        embedded === null || value === null ? value : project(value as Row, embedded);
    }
  }
  return projected;
}
