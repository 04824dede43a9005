import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { test } from 'node:test';
import { settingsReference } from './settings-page.ts';

test('docs/serving.md lists exactly the settings that there are, with flags and defaults', async () => {
  const page = await readFile(new URL('../../../docs/serving.md', import.meta.url), 'utf8');
  const found = /^\| setting \|[^]*?(?=\n\n)/m.exec(page)?.[0] ?? '';
  assert.equal(found, settingsReference());
});
