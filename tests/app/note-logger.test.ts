import assert from 'node:assert/strict';
import { test } from 'node:test';
import { noteLogger } from '../../src/app/note-logger.ts';

test('warnings reach the user once each, with their fields; everything quieter does not', () => {
  const notes: string[] = [];
  const logger = noteLogger((text) => notes.push(text));
  logger.log('debug', 'local environment');
  logger.log('info', 'an archive stands in');
  for (let time = 0; time < 2; time += 1) logger.log('warn', 'no network', { why: 'no device' });
  logger.log('error', 'broken');
  assert.deepEqual(notes, ['no network, why: no device', 'broken']);
});
