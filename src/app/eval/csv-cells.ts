/** The cells of one CSV record (RFC 4180), or what is wrong with it. */
export function csvCells(
  text: string,
): { readonly cells: string[] } | { readonly problem: string } {
  const cells: string[] = [];
  let at = 0;
  for (;;) {
    if (text[at] === '"') {
      let cell = '';
      for (at += 1; ; at += 1) {
        const close = text.indexOf('"', at);
        if (close < 0) return { problem: 'a quoted cell is not closed' };
        cell += text.slice(at, close);
        at = close + 1;
        if (text[at] !== '"') break;
        cell += '"';
      }
      if (at < text.length && text[at] !== ',')
        return { problem: 'text follows the closing quote of a cell' };
      cells.push(cell);
    } else {
      const comma = text.indexOf(',', at);
      const end = comma < 0 ? text.length : comma;
      const cell = text.slice(at, end);
      if (cell.includes('"')) return { problem: 'a quote stands inside a cell without quotes' };
      cells.push(cell);
      at = end;
    }
    if (at >= text.length) return { cells };
    at += 1;
  }
}
