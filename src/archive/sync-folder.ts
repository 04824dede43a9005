import { open } from 'node:fs/promises';

/** What was made, renamed and removed in a folder survives a power cut when this resolves. */
export async function syncFolder(dir: string): Promise<void> {
  await using folder = await open(dir, 'r');
  await folder.sync();
}
