import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, it } from 'node:test';
import { errorRegistry } from '../../src/core/error-registry.ts';

const root = path.resolve(import.meta.dirname, '../..');

function documented(): Record<string, string[]> {
  const page = readFileSync(path.join(root, 'docs/errors.md'), 'utf8');
  const rows: Record<string, string[]> = {};
  for (const line of page.split('\n')) {
    const cells = line.split('|').map((cell) => cell.trim().replaceAll('`', ''));
    const code = cells[1] ?? '';
    if (/^[A-Z][A-Z_]+$/.test(code)) rows[code] = cells.slice(2, 7);
  }
  return rows;
}

describe('the registry of error codes', () => {
  it('equals docs/errors.md, both ways and in every column', () => {
    const expected = Object.fromEntries(
      Object.entries(errorRegistry).map(([code, row]) => [
        code,
        [
          String(row.httpStatus),
          row.category,
          row.retryable ? 'yes' : 'no',
          row.harborType,
          row.summary,
        ],
      ]),
    );
    assert.deepEqual(documented(), expected);
  });

  it('holds no code that nothing raises', () => {
    const sources = readdirSync(path.join(root, 'src'), { recursive: true, encoding: 'utf8' })
      .filter((file) => file.endsWith('.ts') && !file.endsWith('error-registry.ts'))
      .map((file) => readFileSync(path.join(root, 'src', file), 'utf8'))
      .join('\n');
    const unused = Object.keys(errorRegistry).filter((code) => !sources.includes(`'${code}'`));
    assert.deepEqual(unused, []);
  });
});
