import { plainText } from './plain-text.ts';

export type Cell = string | number | null;

/** A plain table: headings underlined, numbers to the right, columns two spaces apart. */
export function renderTable(
  headings: readonly string[],
  rows: readonly (readonly Cell[])[],
): string {
  const texts = rows.map((row) => row.map(cellText));
  const widths = headings.map((heading, column) =>
    Math.max(heading.length, ...texts.map((row) => row[column]?.length ?? 0)),
  );
  const isNumeric = headings.map((_, column) =>
    rows.every((row) => row[column] === null || typeof row[column] === 'number'),
  );
  const line = (cells: readonly string[]): string =>
    cells
      .map((cell, column) => {
        const width = widths[column] ?? 0;
        return isNumeric[column] ? cell.padStart(width) : cell.padEnd(width);
      })
      .join('  ')
      .trimEnd();
  const rule = widths.map((width) => '─'.repeat(width)).join('  ');
  return [line([...headings]), rule, ...texts.map(line)].join('\n');
}

function cellText(cell: Cell): string {
  if (cell === null) return '–';
  return typeof cell === 'number' ? formatNumber(cell) : plainText(cell);
}

/** Whole numbers as they are, others with at most four decimals. */
export function formatNumber(value: number): string {
  return Number.isInteger(value) ? String(value) : String(Number(value.toFixed(4)));
}

/** `850 ms`, `12.3 s`, `4 min 05 s`. */
export function formatDuration(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 100_000) return `${(ms / 1000).toFixed(1)} s`;
  const seconds = Math.round(ms / 1000);
  return `${Math.floor(seconds / 60)} min ${String(seconds % 60).padStart(2, '0')} s`;
}

/** `1 trial`, `2 trials`. */
export function counted(count: number, noun: string, plural = `${noun}s`): string {
  return `${count} ${count === 1 ? noun : plural}`;
}
