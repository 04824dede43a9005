/** A registry of images on the loopback, as clusters pull from: the real program, with its store in a folder of its own. */
import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { dockerRegistryPath } from '../../scripts/setup/docker-registry.js';

const run = promisify(execFile);
const startMs = 15_000;

/** Why images cannot be built and pushed here; null when they can. */
export async function whyNoPushes(): Promise<string | null> {
  if (dockerRegistryPath() === null) return 'no registry here: npm run setup -- tests';
  return await run('docker', ['version']).then(
    () => null,
    () => 'docker does not answer',
  );
}

interface LogLine {
  readonly msg?: string;
  readonly 'http.request.method'?: string;
  readonly 'http.request.uri'?: string;
  readonly 'http.response.status'?: number;
}

export class ImageRegistry implements AsyncDisposable {
  /** Manifests that were pushed, as `name:tag`, in order. */
  readonly pushes: string[] = [];
  readonly #dir: string;
  readonly #child: ChildProcess;
  readonly #ended: Promise<unknown>;
  #address = '';

  private constructor(dir: string, child: ChildProcess) {
    this.#dir = dir;
    this.#child = child;
    this.#ended = once(child, 'exit');
  }

  static async start(): Promise<ImageRegistry> {
    const program = dockerRegistryPath();
    if (program === null) throw new Error('there is no registry program');
    const dir = await mkdtemp(path.join(tmpdir(), 'slipway-registry-'));
    const config = path.join(dir, 'config.yml');
    await writeFile(
      config,
      JSON.stringify({
        version: 0.1,
        log: { level: 'info', formatter: 'json' },
        storage: { filesystem: { rootdirectory: path.join(dir, 'store') } },
        http: { addr: '127.0.0.1:0', secret: 'of-tests' },
      }),
    );
    // It goes with the process that started it, whatever ends that.
    const argv = ['--pdeathsig', 'KILL', program, 'serve', config];
    const child = spawn('setpriv', argv, { stdio: ['ignore', 'pipe', 'pipe'] });
    const registry = new ImageRegistry(dir, child);
    await registry.#listening();
    return registry;
  }

  /** `host:port`, which begins references. */
  get address(): string {
    return this.#address;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#child.kill('SIGKILL');
    await this.#ended;
    await rm(this.#dir, { recursive: true, force: true });
  }

  async #listening(): Promise<void> {
    const ready = Promise.withResolvers<undefined>();
    const late = setTimeout(() => ready.reject(new Error('the registry is silent')), startMs);
    void this.#ended.then(() => ready.reject(new Error('the registry has ended')));
    let rest = '';
    const hear = (text: string): void => {
      const lines = (rest + text).split('\n');
      rest = lines.pop() ?? '';
      for (const line of lines) this.#read(line, () => ready.resolve(undefined));
    };
    this.#child.stdout?.setEncoding('utf8').on('data', hear);
    this.#child.stderr?.setEncoding('utf8').on('data', hear);
    try {
      await ready.promise;
    } finally {
      clearTimeout(late);
    }
  }

  #read(text: string, onListening: () => void): void {
    if (!text.startsWith('{')) return;
    const line = JSON.parse(text) as LogLine;
    const [, address] = /^listening on (\S+)$/.exec(line.msg ?? '') ?? [];
    if (address !== undefined) {
      this.#address = address;
      onListening();
    }
    const uri = line['http.request.uri'] ?? '';
    const [, name, tag] = /^\/v2\/(.+)\/manifests\/([^/]+)$/.exec(uri) ?? [];
    const isPut = line['http.request.method'] === 'PUT' && line['http.response.status'] === 201;
    if (isPut && name !== undefined) this.pushes.push(`${name}:${tag}`);
  }
}

/** A cache folder for sandboxes of this machine that pull from this registry as a cluster does, without TLS. */
export async function cachePullingFrom(address: string, parent: string): Promise<string> {
  const cacheDir = await mkdtemp(path.join(parent, 'cache-'));
  const buildahDir = path.join(cacheDir, 'buildah');
  await mkdir(buildahDir);
  const text = [
    'unqualified-search-registries = []',
    ...['[[registry]]', `location = "${address}"`, 'insecure = true', ''],
  ];
  await writeFile(path.join(buildahDir, 'registries.conf'), text.join('\n'));
  return cacheDir;
}

/** Takes images out of docker's own store; `references` may hold wildcards. */
export async function forgetBuilt(references: string): Promise<void> {
  const format = ['--format', '{{.Repository}}:{{.Tag}}'];
  const { stdout } = await run('docker', ['images', ...format, references]);
  const found = stdout.split('\n').filter((line) => line !== '');
  if (found.length > 0) await run('docker', ['rmi', '--force', ...found]);
}
