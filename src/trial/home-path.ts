import { homedir } from 'node:os';
import path from 'node:path';

/** Absolute form of a path as a user writes it: `~` is the home folder. */
export function absolutePath(text: string): string {
  return path.resolve(text.replace(/^~(?=\/|$)/, homedir()));
}
