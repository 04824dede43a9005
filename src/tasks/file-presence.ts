import { stat } from 'node:fs/promises';

/** The system's error code (`ENOENT`), or undefined. */
export function errnoOf(error: unknown): string | undefined {
  return error instanceof Error ? (error as NodeJS.ErrnoException).code : undefined;
}

const absentCodes = new Set(['ENOENT', 'ENOTDIR', 'ELOOP', 'ENAMETOOLONG']);

async function kindOf(file: string): Promise<'file' | 'folder' | 'other' | 'absent'> {
  try {
    const found = await stat(file);
    if (found.isFile()) return 'file';
    return found.isDirectory() ? 'folder' : 'other';
  } catch (error) {
    const code = errnoOf(error);
    if (code !== undefined && absentCodes.has(code)) return 'absent';
    throw error;
  }
}

/** Whether a regular file is there; a link to one counts. */
export async function isFile(file: string): Promise<boolean> {
  return (await kindOf(file)) === 'file';
}

/** Whether a folder is there; a link to one counts. */
export async function isFolder(dir: string): Promise<boolean> {
  return (await kindOf(dir)) === 'folder';
}
