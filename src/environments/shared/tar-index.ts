/**
 * Random access to an uncompressed tar file: only headers are read, so that the list of tags of a large image archive costs
 * little. Reads names as GNU tar and pax write them. For archives that we chose ourselves (images); unpacking is not done here.
 */
import { createReadStream } from 'node:fs';
import { open, type FileHandle } from 'node:fs/promises';
import { Readable } from 'node:stream';

export interface TarMember {
  readonly name: string;
  readonly type: 'file' | 'link' | 'other';
  readonly linkName: string;
  /** Where its bytes begin in the tar file. */
  readonly offset: number;
  readonly size: number;
}

const block = 512;
const maxMembers = 200_000;
const maxLongName = 1024 * 1024;

export class TarIndex {
  readonly #file: string;
  readonly #members: ReadonlyMap<string, TarMember>;

  private constructor(file: string, members: ReadonlyMap<string, TarMember>) {
    this.#file = file;
    this.#members = members;
  }

  /** Rejects with the system's error, or with an Error when the file is not a tar file. */
  static async read(file: string): Promise<TarIndex> {
    await using handle = await open(file, 'r');
    const members = new Map<string, TarMember>();
    for await (const member of membersOf(handle)) {
      members.set(member.name.replace(/^\.\//, ''), member);
      if (members.size > maxMembers) throw new Error('the archive holds too many files');
    }
    return new TarIndex(file, members);
  }

  get names(): readonly string[] {
    return [...this.#members.keys()];
  }

  /** A member by name, links between members followed (image archives link equal layers); null when absent. */
  member(name: string): TarMember | null {
    let member = this.#members.get(name) ?? null;
    for (let hops = 0; member?.type === 'link' && hops < 8; hops += 1) {
      const target: string = new URL(member.linkName, `tar:///${member.name}`).pathname.slice(1);
      member = this.#members.get(target) ?? this.#members.get(member.linkName) ?? null;
    }
    return member?.type === 'file' ? member : null;
  }

  stream(member: TarMember): Readable {
    if (member.size === 0) return Readable.from([]);
    return createReadStream(this.#file, {
      start: member.offset,
      end: member.offset + member.size - 1,
      highWaterMark: 256 * 1024,
    });
  }
}

async function* membersOf(handle: FileHandle): AsyncGenerator<TarMember> {
  const header = Buffer.alloc(block);
  let at = 0;
  let longName: string | null = null;
  let longLink: string | null = null;
  let pax = new Map<string, string>();
  for (;;) {
    const { bytesRead } = await handle.read(header, 0, block, at);
    if (bytesRead === 0) return;
    if (bytesRead < block) throw new Error('the archive ends in the middle of a header');
    if (header.every((byte) => byte === 0)) return;
    if (!hasValidChecksum(header)) throw new Error('the file is not an uncompressed tar archive');
    const size = Number(pax.get('size') ?? numberField(header, 124, 12));
    if (!Number.isSafeInteger(size) || size < 0) throw new Error('the archive has a broken size');
    const type = String.fromCharCode(header[156] ?? 0);
    const offset = at + block;
    at = offset + Math.ceil(size / block) * block;
    if (type === 'L') longName = await text(handle, offset, size);
    else if (type === 'K') longLink = await text(handle, offset, size);
    else if (type === 'x') pax = paxRecords(await text(handle, offset, size));
    else if (type !== 'g') {
      const prefix = stringField(header, 257, 5) === 'ustar' ? stringField(header, 345, 155) : '';
      const short = stringField(header, 0, 100);
      yield {
        name: pax.get('path') ?? longName ?? (prefix === '' ? short : `${prefix}/${short}`),
        linkName: pax.get('linkpath') ?? longLink ?? stringField(header, 157, 100),
        type:
          type === '0' || type === '\0' ? 'file' : type === '1' || type === '2' ? 'link' : 'other',
        offset,
        size,
      };
      longName = longLink = null;
      pax = new Map();
    }
  }
}

async function text(handle: FileHandle, offset: number, size: number): Promise<string> {
  if (size > maxLongName) throw new Error('the archive has a name that is too long');
  const bytes = Buffer.alloc(size);
  await handle.read(bytes, 0, size, offset);
  return bytes.toString('utf8').replace(/\0+$/, '');
}

/** Records of the form `LENGTH KEY=VALUE\n`, lengths in bytes. */
function paxRecords(body: string): Map<string, string> {
  const bytes = Buffer.from(body);
  const records = new Map<string, string>();
  for (let at = 0; at < bytes.length;) {
    const length = Number.parseInt(bytes.toString('utf8', at, at + 20), 10);
    if (!Number.isInteger(length) || length < 5) break;
    const record = bytes.toString('utf8', at, at + length - 1);
    const from = record.indexOf(' ') + 1;
    const equals = record.indexOf('=', from);
    records.set(record.slice(from, equals), record.slice(equals + 1));
    at += length;
  }
  return records;
}

function stringField(header: Buffer, at: number, length: number): string {
  const field = header.subarray(at, at + length);
  const end = field.indexOf(0);
  return field.toString('utf8', 0, end === -1 ? length : end);
}

/** Octal text, or base 256 when the first bit is set. */
function numberField(header: Buffer, at: number, length: number): number {
  if (((header[at] ?? 0) & 0x80) === 0) {
    const digits = stringField(header, at, length).trim();
    return digits === '' ? 0 : Number.parseInt(digits, 8);
  }
  let value = 0;
  for (let i = at + 1; i < at + length; i += 1) value = value * 256 + (header[i] ?? 0);
  return value;
}

function hasValidChecksum(header: Buffer): boolean {
  let sum = 0;
  for (let i = 0; i < block; i += 1) sum += i >= 148 && i < 156 ? 0x20 : (header[i] ?? 0);
  return sum === numberField(header, 148, 8);
}
