import { open } from 'node:fs/promises';

/** Makes the names in a folder durable: without it a file that was synced itself may be missing after a power cut. */
export async function syncFolder(dir: string): Promise<void> {
  await using folder = await open(dir, 'r');
  await folder.sync();
}
