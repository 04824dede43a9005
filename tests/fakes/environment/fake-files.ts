import { randomUUID } from 'node:crypto';
import { dirname } from 'node:path/posix';
import { InMemoryFs } from 'just-bash';

export interface Owner {
  readonly uid: number;
  readonly gid: number;
}

const root: Owner = { uid: 0, gid: 0 };
const uuidFile = '/proc/sys/kernel/random/uuid';
const maxTotalBytes = 512 * 1_048_576;

/** The file tree of a fake sandbox: in memory, with owners and named pipes, which the tree below does not know. */
export class FakeFiles extends InMemoryFs {
  readonly #owners = new Map<string, Owner>();
  readonly #pipes = new Set<string>();
  isFull = false;
  /** Folders that nobody may change. */
  readonly #sealed: string[] = [];

  constructor() {
    super({}, { maxTotalBytes });
  }

  /** A copy that shares nothing with this one. */
  async copy(): Promise<FakeFiles> {
    const copy = new FakeFiles();
    for (const path of this.getAllPaths().sort()) {
      const stat = await this.lstat(path);
      if (stat.isSymbolicLink) await copy.symlink(await this.readlink(path), path);
      else if (stat.isDirectory) await copy.mkdir(path, { recursive: true });
      else await copy.writeFile(path, await super.readFileBuffer(path));
      if (!stat.isSymbolicLink) await copy.chmod(path, stat.mode);
    }
    for (const [path, owner] of this.#owners) copy.#owners.set(path, owner);
    for (const path of this.#pipes) copy.#pipes.add(path);
    for (const folder of this.#sealed) copy.seal(folder);
    return copy;
  }

  seal(folder: string): void {
    this.#sealed.push(folder);
  }

  owner(path: string): Owner {
    return this.#owners.get(path) ?? root;
  }

  setOwner(path: string, owner: Owner): void {
    this.#owners.set(path, owner);
  }

  async makePipe(path: string): Promise<void> {
    await this.writeFile(path, '');
    this.#pipes.add(path);
  }

  isPipe(path: string): boolean {
    return this.#pipes.has(path);
  }

  override async writeFile(...args: Parameters<InMemoryFs['writeFile']>): Promise<void> {
    this.#refuseWhenFull(args[0]);
    this.#refuseWhenSealed(args[0]);
    await super.writeFile(...args);
  }

  override async appendFile(...args: Parameters<InMemoryFs['appendFile']>): Promise<void> {
    this.#refuseWhenFull(args[0]);
    this.#refuseWhenSealed(args[0]);
    await super.appendFile(...args);
  }

  override async rm(...args: Parameters<InMemoryFs['rm']>): Promise<void> {
    this.#refuseWhenSealed(args[0]);
    await super.rm(...args);
    this.#pipes.delete(args[0]);
    this.#owners.delete(args[0]);
  }

  override async readFileBuffer(path: string): Promise<Uint8Array> {
    if (path === uuidFile) return Buffer.from(`${randomUUID()}\n`);
    return await super.readFileBuffer(path);
  }

  override async readFile(...args: Parameters<InMemoryFs['readFile']>): Promise<string> {
    return args[0] === uuidFile ? `${randomUUID()}\n` : await super.readFile(...args);
  }

  override async readFileBytes(
    path: string,
  ): Promise<Awaited<ReturnType<InMemoryFs['readFileBytes']>>> {
    if (path === uuidFile) super.writeFileSync(path, `${randomUUID()}\n`);
    return await super.readFileBytes(path);
  }

  #refuseWhenSealed(path: string): void {
    if (this.#sealed.some((folder) => path === folder || path.startsWith(`${folder}/`)))
      throw Object.assign(new Error(`EROFS: read-only file system, write '${path}'`), {
        code: 'EROFS',
      });
  }

  #refuseWhenFull(path: string): void {
    if (this.isFull && !path.startsWith('/dev/'))
      throw Object.assign(new Error(`ENOSPC: no space left on device, write '${path}'`), {
        code: 'ENOSPC',
      });
  }
}

/** What a small Debian has, as far as tests look. */
export async function baseFiles(): Promise<FakeFiles> {
  const files = new FakeFiles();
  const texts = {
    '/etc/passwd':
      'root:x:0:0:root:/root:/bin/bash\nagent:x:1000:1000::/home/agent:/bin/bash\n' +
      'nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n',
    '/etc/group': 'root:x:0:\nagent:x:1000:\nnogroup:x:65534:\n',
    '/etc/hosts': '127.0.0.1\tlocalhost\n',
    '/proc/net/dev': 'Inter-|   Receive\n face |bytes\n    lo:       0\n',
    [uuidFile]: '',
    '/dev/null': '',
    '/dev/zero': '',
  };
  for (const [path, text] of Object.entries(texts)) {
    await files.mkdir(dirname(path), { recursive: true });
    await files.writeFile(path, text);
  }
  for (const folder of ['/tmp', '/root', '/home/agent', '/usr/bin', '/bin'])
    await files.mkdir(folder, { recursive: true });
  await files.chmod('/tmp', 0o1777);
  files.setOwner('/home/agent', { uid: 1000, gid: 1000 });
  return files;
}
