import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  artifactDestination,
  findOverlaps,
  isOverlap,
  withPublishDir,
} from '../../src/tasks/artifacts.ts';
import type { Artifact } from '../../src/tasks/task.ts';

function artifact(source: string, rest: Partial<Artifact> = {}): Artifact {
  return { source, destination: null, exclude: [], service: null, ...rest };
}

describe('the place of an artifact', () => {
  const rows: readonly (readonly [Artifact, string])[] = [
    [artifact('/logs/artifacts'), 'logs/artifacts'],
    [artifact('/logs/artifacts/', { service: 'db' }), 'logs/artifacts'],
    [artifact('C:/x'), 'C:/x'],
    [artifact('C:\\x\\y'), 'C:/x/y'],
    [artifact('out//a/./b'), 'out/a/b'],
    [artifact('/a', { destination: 'b/c/' }), 'b/c'],
    [artifact('/a', { destination: './manifest.json' }), 'manifest.json'],
  ];
  for (const [given, place] of rows)
    it(`of ${given.source} to ${given.destination ?? 'nowhere in particular'} is ${place}`, () => {
      assert.equal(artifactDestination(given), place);
    });
});

describe('the publish folder', () => {
  it('is collected first', () => {
    const sources = withPublishDir([artifact('/a')], 'linux').map(({ source }) => source);
    assert.deepEqual(sources, ['/logs/artifacts', '/a']);
    assert.equal(withPublishDir([], 'windows')[0]?.source, 'C:/logs/artifacts');
  });

  it('is not added when the task declares it, in its place and with its excludes', () => {
    const own = [artifact('/a'), artifact('/logs/artifacts/', { exclude: ['*.tmp'] })];
    assert.equal(withPublishDir(own, 'linux'), own);
  });

  it('of a service is another folder', () => {
    const own = [artifact('/logs/artifacts', { service: 'db' })];
    assert.equal(withPublishDir(own, 'linux').length, 2);
  });
});

describe('artifacts overlap', () => {
  const rows: readonly (readonly [string, readonly Artifact[], number])[] = [
    ['not when they lie apart', [artifact('/a'), artifact('/ab')], 0],
    ['when they are equal', [artifact('/a'), artifact('/a/')], 1],
    ['when one holds the other', [artifact('/a/b'), artifact('/a')], 1],
    ['when services claim one place', [artifact('/a'), artifact('/a', { service: 'db' })], 1],
    [
      'when destinations meet',
      [artifact('/a', { destination: 'x' }), artifact('/b', { destination: 'x/y' })],
      1,
    ],
    [
      'when only sources do',
      [artifact('/a', { destination: 'x' }), artifact('/a/b', { destination: 'y' })],
      1,
    ],
    [
      'not when sources are of two services',
      [artifact('/a', { destination: 'x' }), artifact('/a', { destination: 'y', service: 'db' })],
      0,
    ],
  ];
  for (const [what, artifacts, count] of rows)
    it(what, () => {
      assert.equal(findOverlaps(artifacts).length, count);
    });

  it('and paths are compared by component', () => {
    assert.equal(isOverlap('/a/b', 'a'), true);
    assert.equal(isOverlap('/a', '/ab'), false);
  });
});
