/**
 * The records of a dataset file, one after the other, with their places in it: lines of JSONL, rows of CSV (whose quoted cells may hold line ends).
 * The file is read in pieces; no more than one record is held.
 */
import type { FileHandle } from 'node:fs/promises';

export interface DatasetRecord {
  /** Bytes of the file, without the line end. */
  readonly start: number;
  readonly end: number;
  /** Where it begins; the first line is 1. */
  readonly line: number;
  /** null = longer than allowed. */
  readonly bytes: Buffer | null;
}

const pieceBytes = 1 << 20;
const [lineFeed, carriageReturn, quote] = [0x0a, 0x0d, 0x22];

/** Empty records are left out. `onPiece` sees every byte of the file, in order. */
export async function* readRecords(
  file: FileHandle,
  options: {
    readonly isCsv: boolean;
    readonly maxBytes: number;
    readonly onPiece: (piece: Buffer) => void;
  },
): AsyncGenerator<DatasetRecord> {
  const { isCsv, maxBytes } = options;
  let held: Buffer[] = [];
  let heldBytes = 0;
  let [start, position, line, firstLine] = [0, 0, 1, 1];
  let isQuoted = false;
  const hold = (part: Buffer): void => {
    if (heldBytes <= maxBytes) held.push(Buffer.from(part));
    heldBytes += part.length;
  };
  const finish = (): DatasetRecord | null => {
    let bytes = heldBytes > maxBytes ? null : Buffer.concat(held);
    if (bytes?.at(-1) === carriageReturn) bytes = bytes.subarray(0, -1);
    const end = start + (bytes?.length ?? heldBytes);
    const record = { start, end, line: firstLine, bytes };
    held = [];
    heldBytes = 0;
    return bytes !== null && bytes.toString('latin1').trim() === '' ? null : record;
  };
  for (;;) {
    const piece = Buffer.allocUnsafe(pieceBytes);
    const { bytesRead } = await file.read(piece, 0, pieceBytes, position);
    if (bytesRead === 0) break;
    const read = piece.subarray(0, bytesRead);
    options.onPiece(read);
    let from = 0;
    for (let at = 0; at < bytesRead; at += 1) {
      const byte = read[at];
      if (isCsv && byte === quote) isQuoted = !isQuoted;
      if (byte !== lineFeed) continue;
      line += 1;
      if (isQuoted) continue;
      hold(read.subarray(from, at));
      const record = finish();
      if (record !== null) yield record;
      from = at + 1;
      start = position + from;
      firstLine = line;
    }
    hold(read.subarray(from));
    position += bytesRead;
  }
  const last = finish();
  if (last !== null) yield last;
}
