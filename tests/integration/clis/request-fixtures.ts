/**
 * What a program of a pinned version sends, as a fixture: ids and times are named, not told, and long texts of the vendor are replaced by their length. Lengths
 * differ between machines, whose kernel and folders are in the texts, so they are kept and not compared.
 */
import { readFileSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import type { RecordedCall } from './recording-front.ts';

const longestText = 120;

const names: readonly (readonly [RegExp, string])[] = [
  [/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g, '<uuid>'],
  [/\b(call|resp|msg|rs|fc|fco|toolu|ctc|ses)_\w+/g, '$1_<id>'],
  [/\b[0-9a-f]{24,}\b/g, '<hex>'],
  [/\d{4}-\d\d-\d\d(T[\d:.]+Z)?/g, '<date>'],
  [/Chunk ID: \w+/g, 'Chunk ID: <id>'],
  [/Wall time: [\d.]+/g, 'Wall time: <number>'],
  [/127\.0\.0\.1:\d+/g, '<address>'],
];

/** Headers of the connection, and those whose value is a key or differs with every run. */
const leftOut = new Set(['host', 'connection', 'content-length', 'transfer-encoding']);
const unnamed = new Set([
  'authorization',
  'x-api-key',
  'x-stainless-runtime-version',
  'traceparent',
]);

function plain(text: string): string {
  return names.reduce((found, [pattern, name]) => found.replaceAll(pattern, name), text);
}

function shapeOf(value: unknown): unknown {
  if (typeof value === 'string')
    return value.length > longestText ? `<text of ${value.length} characters>` : plain(value);
  if (typeof value === 'number')
    return value > 1e9 || !Number.isInteger(value) ? '<number>' : value;
  if (Array.isArray(value)) return value.map(shapeOf);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, shapeOf(each)]));
}

export function requestShapes(calls: readonly RecordedCall[]): readonly unknown[] {
  return calls.map(({ method, path: at, headers, body }) => ({
    request: `${method} ${at}`,
    headers: Object.fromEntries(
      Object.entries(headers)
        .filter(([name]) => !leftOut.has(name))
        .map(([name, value]): readonly [string, unknown] => [
          name,
          unnamed.has(name) ? '<value>' : shapeOf(value),
        ])
        .sort(([a], [b]) => (a < b ? -1 : 1)),
    ),
    body: shapeOf(JSON.parse(body) as unknown),
  }));
}

const fixturesDir = path.resolve(import.meta.dirname, '../../golden/agents');

export function fixtureFile(agent: string, version: string): string {
  return path.join(fixturesDir, `${agent}-${version}.json`);
}

export async function saveFixture(file: string, calls: readonly RecordedCall[]): Promise<void> {
  await mkdir(fixturesDir, { recursive: true });
  await writeFile(file, `${JSON.stringify(requestShapes(calls), null, 1)}\n`);
}

/** As it is compared. */
export function readFixture(file: string): unknown {
  return withoutLengths(JSON.parse(readFileSync(file, 'utf8')));
}

export function withoutLengths(shapes: unknown): unknown {
  return JSON.parse(
    JSON.stringify(shapes).replaceAll(/<text of \d+ characters>/g, '<text>'),
  ) as unknown;
}
