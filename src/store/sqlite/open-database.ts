import { chmodSync, closeSync, openSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';

const pageBytes = 4096;
/** The log beside the file is cut to this after it was merged, so that one burst does not keep its space. */
const logBytes = 64 * 1024 * 1024;

/** Opens the file for writing, private to this user, in the mode in which a commit holds through a power cut. */
export function openForWriting(file: string, maxSizeBytes: number | null): DatabaseSync {
  // SQLite gives the files beside it the mode of this one.
  closeSync(openSync(file, 'a', 0o600));
  chmodSync(file, 0o600);
  const database = new DatabaseSync(file);
  try {
    database.exec(`
      PRAGMA busy_timeout = 10000;
      PRAGMA page_size = ${pageBytes};
      PRAGMA auto_vacuum = INCREMENTAL;
      PRAGMA journal_mode = WAL;
      PRAGMA synchronous = FULL;
      PRAGMA journal_size_limit = ${logBytes};
    `);
    if (maxSizeBytes !== null)
      database.exec(`PRAGMA max_page_count = ${Math.max(1, Math.floor(maxSizeBytes / pageBytes))}`);
    return database;
  } catch (error) {
    database.close();
    throw error;
  }
}
