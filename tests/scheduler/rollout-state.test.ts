import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, it } from 'node:test';
import { transition, transitions, type Mover } from '../../src/scheduler/rollout-state.ts';
import {
  isTerminal,
  rolloutStates,
  type RolloutState,
} from '../../src/wire/rollout/rollout-state.ts';

const movers: Record<Mover, true> = {
  admission: true,
  dispatcher: true,
  backend: true,
  controller: true,
  deadline: true,
  recovery: true,
  shutdown: true,
};

type Row = readonly [from: RolloutState | null, to: RolloutState, by: Mover];

const everyRow: readonly Row[] = [null, ...rolloutStates].flatMap((from) =>
  rolloutStates.flatMap((to) =>
    (Object.keys(movers) as Mover[]).map((by) => [from, to, by] as const),
  ),
);

const isRow = ([from, to, by]: Row): boolean =>
  transitions.some((row) => row.from === from && row.to === to && row.by === by);

const titleOf = ([from, to, by]: Row): string => `${from ?? 'nothing'} to ${to} by ${by}`;

describe('the life of a rollout', () => {
  for (const row of everyRow.filter(isRow))
    it(`goes from ${titleOf(row)}`, () => {
      const [from, to, by] = row;
      const found = transition(from, to, by);
      assert.deepEqual([found.from, found.to, found.by], row);
      const isEnd = isTerminal(to);
      assert.equal(found.event === 'rollout:ended', isEnd && from !== null);
    });

  for (const row of everyRow.filter((one) => !isRow(one)))
    it(`never goes from ${titleOf(row)}`, () => {
      assert.throws(() => transition(...row), TypeError);
    });

  it('leads out of no end', () => {
    const out = transitions.filter(({ from }) => from !== null && isTerminal(from));
    assert.deepEqual(out, []);
  });

  it('has no row twice', () => {
    const titles = transitions.map(({ from, to, by }) => titleOf([from, to, by]));
    assert.deepEqual(titles, [...new Set(titles)]);
  });

  it('is the table of docs/lifecycle.md, row by row', () => {
    const page = readFileSync(path.resolve(import.meta.dirname, '../../docs/lifecycle.md'), 'utf8');
    const [, section = ''] = page.split('\n## The life of a rollout\n');
    const rows = section
      .split('\n')
      .filter((line) => line.startsWith('| '))
      .map((line) => line.split('|').map((cell) => cell.trim().replaceAll('`', '')))
      .map(([, from, to, by, event]) => [from, to, by, event])
      .slice(2);
    assert.deepEqual(
      rows,
      transitions.map(({ from, to, by, event }) => [from ?? '—', to, by, event ?? '—']),
    );
  });
});
