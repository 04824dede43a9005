import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, it } from 'node:test';

const root = path.resolve(import.meta.dirname, '../../src/collector');
const hostWords = /harbor|flush|agent[- _]?server/i;

/** Files with a word of an agent's host, below `src/collector` or as given. */
function named(files: readonly string[]): readonly string[] {
  return files.filter((file) =>
    hostWords.test(`${file}\n${readFileSync(path.join(root, file), 'utf8')}`),
  );
}

describe('the collector', () => {
  const files = globSync('**/*.ts', { cwd: root });

  it('has no word of an agent’s host outside of its plugins', () => {
    const core = files.filter((file) => !file.startsWith('plugins/'));
    assert.ok(core.length > 20);
    assert.deepEqual(named(core), []);
  });

  it('would be found out: its plugins have such words', () => {
    assert.ok(named(files).includes('plugins/harbor-plugin.ts'));
  });
});
