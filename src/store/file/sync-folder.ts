import { open } from 'node:fs/promises';

/** Makes the names in a folder durable: without it a file that was synced itself may be missing after a power cut. */
export async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
