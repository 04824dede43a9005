import { appendFile, open, readdir, readFile, stat } from 'node:fs/promises';
import path from 'node:path';

const headerBytes = 32;
const frameBytes = 24 + 4096;

/** Puts something behind the last commit of a dead server's store, as a write that was cut off leaves it; answers what. */
export async function addGarbage(dataDir: string, random: () => number): Promise<string | null> {
  const log = path.join(dataDir, 'store.sqlite-wal');
  const size = await stat(log).then(
    (found) => found.size,
    () => 0,
  );
  if (size < headerBytes + frameBytes) return null;
  const kind = (['nothing', 'garbage', 'half a frame', 'an old frame'] as const)[
    Math.floor(random() * 4)
  ];
  if (kind === 'garbage') {
    const bytes = Uint8Array.from({ length: 1 + Math.floor(random() * 9_000) }, () =>
      Math.floor(random() * 256),
    );
    await appendFile(log, bytes);
  } else if (kind === 'half a frame' || kind === 'an old frame') {
    const frame = Buffer.alloc(frameBytes);
    const file = await open(log, 'r');
    try {
      await file.read(frame, 0, frameBytes, headerBytes);
    } finally {
      await file.close();
    }
    const kept = kind === 'an old frame' ? frameBytes : Math.floor(random() * frameBytes);
    await appendFile(log, frame.subarray(0, kept));
  }
  return kind ?? null;
}

/** Puts half a record behind the last one of a dead server's sandbox journal. */
export async function addHalfRecord(stateDir: string, pid: number): Promise<void> {
  const runsDir = path.join(stateDir, 'runs');
  const names = await readdir(runsDir).catch(() => []);
  for (const name of names.filter((one) => one.endsWith('.ndjson'))) {
    const file = path.join(runsDir, name);
    const [first = ''] = (await readFile(file, 'utf8')).split('\n');
    if (first.includes(`"pid":${pid},`)) await appendFile(file, '{"type":"created","na');
  }
}
