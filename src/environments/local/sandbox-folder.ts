import path from 'node:path';

/**
 * Everything of one sandbox lies in one folder, so that its name alone finds it after a crash. `disk` holds what the sandbox
 * writes (on a file system of its own when it has a quota), the rest is ours. The folder is readable by its owner only: it holds the
 * sandbox's variables.
 */
export class SandboxFolder {
  readonly name: string;
  readonly dir: string;
  /** The runtime's own records of all sandboxes of this state folder. */
  readonly runtimeRoot: string;

  constructor(stateDir: string, name: string) {
    this.name = name;
    this.dir = path.join(sandboxesDir(stateDir), name);
    this.runtimeRoot = path.join(stateDir, 'runtime');
  }

  get labels(): string {
    return path.join(this.dir, 'labels.json');
  }
  get config(): string {
    return path.join(this.dir, 'config.json');
  }
  get initPid(): string {
    return path.join(this.dir, 'init.pid');
  }
  get runtimeLog(): string {
    return path.join(this.dir, 'runtime.log');
  }
  /** The program that each process of a sandbox without namespaces runs first; absent in others. */
  get loader(): string {
    return path.join(this.dir, 'loader');
  }
  /** Where the overlay is mounted: the sandbox's root as the host sees it. */
  get rootfs(): string {
    return path.join(this.dir, 'rootfs');
  }
  get disk(): string {
    return path.join(this.dir, 'disk');
  }
  /** The sparse file behind `disk` when there is a quota. */
  get diskImage(): string {
    return path.join(this.dir, 'disk.ext4');
  }
  get upper(): string {
    return path.join(this.disk, 'upper');
  }
  get work(): string {
    return path.join(this.disk, 'work');
  }
  /** Output of the image's ENTRYPOINT; on `disk`, because the sandbox can write to it without bound. */
  get initLog(): string {
    return path.join(this.disk, 'init.log');
  }
  /** `hosts`, `hostname` and `resolv.conf` of the sandbox. */
  get etc(): string {
    return path.join(this.disk, 'etc');
  }
  /** Extra certificates with the public roots, when there are any. */
  get caFile(): string {
    return path.join(this.dir, 'ca-certificates.pem');
  }
  get sockets(): string {
    return path.join(this.dir, 'sockets');
  }
  /** Where the runtime keeps its record of this sandbox. */
  get runtimeState(): string {
    return path.join(this.runtimeRoot, this.name);
  }
}

export function sandboxesDir(stateDir: string): string {
  return path.join(stateDir, 'sandboxes');
}
