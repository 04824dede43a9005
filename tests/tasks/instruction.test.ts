import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { never } from '../../src/core/linked-abort.ts';
import {
  composeInstruction,
  readExtraInstructions,
  stripCanary,
} from '../../src/tasks/instruction.ts';
import { taskFolder } from '../fakes/task-folder.ts';

describe('a canary', () => {
  const rows: readonly (readonly [string, string, string])[] = [
    ['as an HTML comment goes', '<!-- BENCHMARK CANARY guid -->\nDo it.\n', 'Do it.\n'],
    ['as a heading goes', '# canary GUID 1\n\nDo it.', 'Do it.'],
    ['with blanks around it goes', '  <!-- canary -->  \nDo it.', 'Do it.'],
    ['of several lines goes', '<!-- canary -->\n# Canary 2\n\n\nDo it.', 'Do it.'],
    ['behind the first text stays', 'Do it.\n# canary\n', 'Do it.\n# canary\n'],
    ['behind a blank line stays', '# canary\n\n# canary too\n', '# canary too\n'],
    ['in a comment with more text stays', '<!-- canary --> Do it.', '<!-- canary --> Do it.'],
    ['in plain words stays', 'A canary sings.', 'A canary sings.'],
    ['that is all there is leaves nothing', '<!-- canary -->\n\n', ''],
  ];
  for (const [what, text, stripped] of rows)
    it(what, () => {
      assert.equal(stripCanary(text), stripped);
    });

  it('is not needed for leading blank lines to go', () => {
    assert.equal(stripCanary('\n  \nDo it.\n'), 'Do it.\n');
    assert.equal(stripCanary(''), '');
    assert.equal(stripCanary('# Heading\n\nDo it.\n'), '# Heading\n\nDo it.\n');
  });
});

describe('extra instructions', () => {
  it('follow the text behind a blank line each, files first and unchanged', async () => {
    await using folder = await taskFolder({ 'a.md': '\n# canary\nA\r\n', 'b.md': 'B' });
    const paths = [`${folder.dir}/a.md`, `${folder.dir}/b.md`];
    const extra = await readExtraInstructions({ paths, texts: ['C'] }, never);
    assert.equal(
      composeInstruction('# canary\nDo it.\n', extra),
      'Do it.\n\n\n\n# canary\nA\n\n\nB\n\nC',
    );
  });

  it('of a file that is missing are refused, naming which', async () => {
    await using folder = await taskFolder({ 'a.md': 'A' });
    const paths = [`${folder.dir}/a.md`, `${folder.dir}/b.md`];
    await assert.rejects(readExtraInstructions({ paths, texts: [] }, never), {
      code: 'CONFIG_INVALID',
      field: 'extra_instruction_paths[1]',
    });
  });
});
