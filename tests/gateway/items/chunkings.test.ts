import { it } from 'node:test';
import { checkChunkings } from './chunkings.ts';

it('an answer has the same items wherever its stream is cut', async () => {
  await checkChunkings(300, 1);
});
