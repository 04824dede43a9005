/**
 * runc by hand: an overlay over one unpacked root, and either the configuration that `runc spec` writes (three capabilities, no system call
 * filter) or that of a sandbox of ours.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { timed } from '../samples.ts';
import { command } from './commands.ts';

export class BareRuntime {
  readonly #root: string;
  #next = 0;

  private constructor(root: string) {
    this.#root = root;
  }

  /** Unpacks the image once, through Docker. */
  static async prepare(root: string, image: string): Promise<BareRuntime> {
    const lower = path.join(root, 'lower');
    await mkdir(lower, { recursive: true });
    const id = (await command('docker', ['create', image, 'true'])).trim();
    try {
      const exporting = spawn('docker', ['export', id], { stdio: ['ignore', 'pipe', 'ignore'] });
      const unpacking = spawn('tar', ['-x', '-C', lower], {
        stdio: [exporting.stdout, 'ignore', 'inherit'],
      });
      await once(unpacking, 'close');
    } finally {
      await command('docker', ['rm', '-f', id]);
    }
    return new BareRuntime(root);
  }

  /**
   * Start of one container: overlay and `runc run`; the bundle is written before. Returns its handle and the time in ms.
   *
   * @param config Text of an OCI configuration; null = as `runc spec` writes it.
   */
  async start(config: string | null): Promise<{ ms: number; container: BareContainer }> {
    const id = `slipway-bench-bare-${process.pid}-${this.#next++}`;
    const bundle = path.join(this.#root, id);
    for (const dir of ['upper', 'work', 'rootfs'])
      await mkdir(path.join(bundle, dir), { recursive: true });
    await this.#writeConfig(bundle, config);
    const overlay = `lowerdir=${path.join(this.#root, 'lower')},upperdir=${bundle}/upper,workdir=${bundle}/work`;
    const { ms } = await timed(async () => {
      await command('mount', ['-t', 'overlay', 'overlay', '-o', overlay, `${bundle}/rootfs`]);
      await detached('runc', ['run', '--detach', '--bundle', bundle, id]);
    });
    return { ms, container: new BareContainer(id, bundle) };
  }

  async #writeConfig(bundle: string, text: string | null): Promise<void> {
    const file = path.join(bundle, 'config.json');
    if (text === null) await command('runc', ['spec', '--bundle', bundle]);
    const config = JSON.parse(text ?? (await readFile(file, 'utf8'))) as {
      process: { terminal: boolean; args: string[] };
      root: { readonly: boolean; path: string };
      linux: { cgroupsPath?: string };
    };
    config.process.terminal = false;
    if (text === null) config.process.args = ['sleep', 'infinity'];
    config.root = { path: path.join(bundle, 'rootfs'), readonly: false };
    delete config.linux.cgroupsPath; // the runtime's own default: ours belongs to the sandbox it was made for
    await writeFile(file, JSON.stringify(config));
  }
}

export class BareContainer {
  readonly #id: string;
  readonly #bundle: string;

  constructor(id: string, bundle: string) {
    this.#id = id;
    this.#bundle = bundle;
  }

  async exec(line: string): Promise<void> {
    await command('runc', ['exec', this.#id, 'sh', '-c', line]);
  }

  async destroy(): Promise<void> {
    await command('runc', ['delete', '--force', this.#id]);
    await command('umount', [`${this.#bundle}/rootfs`]);
    await rm(this.#bundle, { recursive: true, maxRetries: 10, retryDelay: 50 });
  }
}

/** A detached container keeps its standard streams open: they must not be pipes that we wait for. */
async function detached(program: string, args: readonly string[]): Promise<void> {
  const child = spawn(program, [...args], { stdio: ['ignore', 'ignore', 'inherit'] });
  const [code] = (await once(child, 'close')) as [number];
  if (code !== 0) throw new Error(`${program} ${args[0] ?? ''} exited with ${code}`);
}
