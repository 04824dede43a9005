import { randomUUID } from 'node:crypto';
import { open, rename, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';

/** Replaces a file as a whole: a reader sees the old text or the new one, also after a crash. */
export async function writeFileAtomically(path: string, text: string): Promise<void> {
  const draft = join(dirname(path), `.${randomUUID()}.tmp`);
  try {
    const file = await open(draft, 'wx');
    try {
      await file.writeFile(text);
      await file.datasync();
    } finally {
      await file.close();
    }
    await rename(draft, path);
  } catch (error) {
    await rm(draft, { force: true });
    throw error;
  }
}

/** JSON with Harbor's indentation. */
export async function writeJsonAtomically(path: string, value: unknown): Promise<void> {
  await writeFileAtomically(path, `${JSON.stringify(value, null, 4)}\n`);
}
