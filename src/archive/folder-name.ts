/**
 * Rollout ids as folder names: letters, digits, `-`, `_` and inner dots stay, every other byte is `%XX`. An id whose name would be too long, or that
 * has no UTF-8, is named by its hash behind a `~`, which no other name holds; the folder keeps the id in a file then.
 */
import { createHash } from 'node:crypto';

/** Room for endings of temporary names within the 255 bytes of a file system. */
const maxBytes = 200;

export function folderName(rolloutId: string): string {
  if (!rolloutId.isWellFormed()) return hashed(rolloutId);
  const name = [...Buffer.from(rolloutId, 'utf8')].map(byteName).join('');
  return name.length > maxBytes ? hashed(rolloutId) : name;
}

/** null = the name is a hash, or no name of ours. */
export function idOfFolder(name: string): string | null {
  if (!/^(?:[A-Za-z0-9_.-]|%[0-9A-F]{2})+$/.test(name)) return null;
  try {
    const id = decodeURIComponent(name);
    return folderName(id) === name ? id : null;
  } catch {
    return null;
  }
}

function byteName(byte: number, index: number): string {
  const text = String.fromCharCode(byte);
  const isPlain = /[A-Za-z0-9_-]/.test(text) || (text === '.' && index > 0);
  return isPlain ? text : `%${byte.toString(16).toUpperCase().padStart(2, '0')}`;
}

function hashed(rolloutId: string): string {
  return `~${createHash('sha256').update(rolloutId, 'utf16le').digest('hex')}`;
}
