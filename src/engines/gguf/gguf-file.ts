import { open } from 'node:fs/promises';

const headLength = 24;
const versions = [2, 3];

/** Throws unless the file begins as GGUF does. The library reads what is none again and again, for minutes. */
export async function checkGgufHead(file: string): Promise<void> {
  const handle = await open(file);
  try {
    const { bytesRead, buffer } = await handle.read(Buffer.alloc(headLength), 0, headLength, 0);
    if (bytesRead < headLength || buffer.toString('latin1', 0, 4) !== 'GGUF')
      throw new Error('it is not a GGUF file');
    const version = buffer.readUInt32LE(4);
    if (!versions.includes(version)) throw new Error(`its GGUF version is ${version}`);
  } finally {
    await handle.close();
  }
}
