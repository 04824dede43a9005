/**
 * The cgroups of sandboxes, in version 1 (one hierarchy per controller) and version 2 (one for all). The runtime makes a sandbox's
 * cgroup and sets its limits; here it is looked into, frozen, killed and removed. What this machine does not let us write is
 * found out once, by `probe`.
 */
import { mkdirSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';

export interface CgroupAbilities {
  readonly version: 1 | 2;
  readonly memory: boolean;
  readonly cpu: boolean;
  readonly pids: boolean;
}

interface Hierarchy {
  readonly root: string;
  /** Version 1: the controllers of this hierarchy. Empty for version 2. */
  readonly controllers: readonly string[];
}

const wantedControllers = ['memory', 'cpu', 'pids'] as const;

export class CgroupTree {
  readonly version: 1 | 2;
  readonly #hierarchies: readonly Hierarchy[];
  /** Our parent group, by name below each root. */
  readonly #parent: string;

  private constructor(version: 1 | 2, hierarchies: readonly Hierarchy[], parent: string) {
    this.version = version;
    this.#hierarchies = hierarchies;
    this.#parent = parent;
  }

  /** The hierarchies of this host; null when there are none. `parent` is one path component. */
  static detect(
    parent: string,
    mounts = readFileSync('/proc/self/mounts', 'utf8'),
  ): CgroupTree | null {
    const rows = mounts.split('\n').map((line) => line.split(' '));
    const first = rows.filter(([, , type]) => type === 'cgroup');
    const second = rows.find(([, , type]) => type === 'cgroup2');
    const hierarchies = first.map(([, root = '', , options = '']) => ({
      root,
      controllers: options
        .split(',')
        .filter((option) => !['rw', 'ro', 'relatime'].includes(option)),
    }));
    const isHybrid = hierarchies.some(({ controllers }) => controllers.includes('pids'));
    if (isHybrid) {
      // The runtime makes its group in the second version's hierarchy too, though no limit lives there.
      const unified = second?.[1] === undefined ? [] : [{ root: second[1], controllers: [] }];
      return new CgroupTree(1, [...hierarchies, ...unified], parent);
    }
    if (second?.[1] === undefined) return null;
    return new CgroupTree(2, [{ root: second[1], controllers: [] }], parent);
  }

  /** Makes our parent group and says which limits can be set below it; null when no group can be made. */
  probe(): CgroupAbilities | null {
    const trial = this.group(`probe-${process.pid}`);
    try {
      for (const dir of this.#writableDirs(trial.name)) mkdirSync(dir, { recursive: true });
      const able = this.version === 1 ? this.#probeFirst() : this.#probeSecond();
      return {
        version: this.version,
        memory: able('memory'),
        cpu: able('cpu'),
        pids: able('pids'),
      };
    } catch {
      return null;
    } finally {
      trial.remove();
      this.removeParent();
    }
  }

  /** Path below every root, as the runtime's document wants it. */
  runtimePath(name: string): string {
    return `/${this.#parent}/${name}`;
  }

  group(name: string): SandboxCgroup {
    const dirs = this.#hierarchies.map(({ root }) => path.join(root, this.#parent, name));
    const at = (controller: string): string | null => {
      const index = this.#hierarchies.findIndex((one) => one.controllers.includes(controller));
      return dirs[index] ?? null;
    };
    return new SandboxCgroup(name, {
      dirs,
      members:
        this.version === 2 ? (dirs[0] ?? null) : (at('pids') ?? at('freezer') ?? at('memory')),
      freezer: this.version === 2 ? (dirs[0] ?? null) : at('freezer'),
      weight: this.version === 2 ? (dirs[0] ?? null) : at('cpu'),
      version: this.version,
    });
  }

  /** Removes our parent group when no sandbox is in it. */
  removeParent(): void {
    for (const { root } of this.#hierarchies) removeDir(path.join(root, this.#parent));
  }

  /** The runtime can do without a hierarchy that is mounted read-only, but not without those of limits. */
  #writableDirs(name: string): readonly string[] {
    return this.#hierarchies
      .filter(
        ({ controllers }) =>
          this.version === 2 || controllers.some((one) => ['pids', 'freezer'].includes(one)),
      )
      .map(({ root }) => path.join(root, this.#parent, name));
  }

  #probeFirst(): (controller: string) => boolean {
    return (controller) => {
      const hierarchy = this.#hierarchies.find((one) => one.controllers.includes(controller));
      if (hierarchy === undefined) return false;
      const dir = path.join(hierarchy.root, this.#parent);
      try {
        mkdirSync(dir, { recursive: true });
        return true;
      } catch {
        return false;
      }
    };
  }

  #probeSecond(): (controller: string) => boolean {
    const root = this.#hierarchies[0]?.root ?? '';
    const parent = path.join(root, this.#parent);
    for (const dir of [root, parent])
      for (const controller of wantedControllers)
        try {
          writeFileSync(path.join(dir, 'cgroup.subtree_control'), `+${controller}`);
        } catch {
          // shown by what is then not among the controllers
        }
    const enabled = readFileSync(path.join(parent, 'cgroup.subtree_control'), 'utf8')
      .trim()
      .split(' ');
    return (controller) => enabled.includes(controller);
  }
}

interface CgroupPlaces {
  readonly dirs: readonly string[];
  readonly members: string | null;
  readonly freezer: string | null;
  /** Of the processor, among sandboxes. */
  readonly weight: string | null;
  readonly version: 1 | 2;
}

/** The cgroup of one sandbox. Every method is fine with a group that does not exist. */
export class SandboxCgroup {
  readonly name: string;
  readonly #places: CgroupPlaces;

  constructor(name: string, places: CgroupPlaces) {
    this.name = name;
    this.#places = places;
  }

  get exists(): boolean {
    return this.#places.dirs.some((dir) => subtree(dir).length > 0);
  }

  /** Living processes, as the host numbers them. */
  pids(): readonly number[] {
    const { members } = this.#places;
    if (members === null) return [];
    return subtree(members).flatMap((dir) => numbers(path.join(dir, 'cgroup.procs')));
  }

  /** While frozen nothing forks. False when it cannot be frozen. It takes effect when `isFrozen` says so. */
  setFrozen(isFrozen: boolean): boolean {
    const { freezer, version } = this.#places;
    if (freezer === null) return false;
    const file = version === 2 ? 'cgroup.freeze' : 'freezer.state';
    const word = version === 2 ? (isFrozen ? '1' : '0') : isFrozen ? 'FROZEN' : 'THAWED';
    return write(path.join(freezer, file), word);
  }

  get isFrozen(): boolean {
    const { freezer, version } = this.#places;
    if (freezer === null) return false;
    return version === 2
      ? read(path.join(freezer, 'cgroup.events')).includes('frozen 1')
      : read(path.join(freezer, 'freezer.state')).trim() === 'FROZEN';
  }

  /** SIGKILLs all at once where the kernel can (version 2); else false. */
  killAll(): boolean {
    const { members, version } = this.#places;
    return version === 2 && members !== null && write(path.join(members, 'cgroup.kill'), '1');
  }

  /** What dies comes before the sandboxes that work: also dying takes the processor. */
  hasten(): void {
    const { weight, version } = this.#places;
    if (weight === null) return;
    const [file, most] = version === 2 ? ['cpu.weight', '10000'] : ['cpu.shares', '262144'];
    write(path.join(weight, file), most);
  }

  /** Removes the emptied group; whether nothing of it is left. */
  remove(): boolean {
    for (const dir of this.#places.dirs)
      for (const below of subtree(dir).reverse()) removeDir(below);
    return !this.exists;
  }
}

/** A folder and those below it, parents first; empty when it does not exist. */
function subtree(dir: string): string[] {
  try {
    const below = readdirSync(dir, { withFileTypes: true }).filter((entry) => entry.isDirectory());
    return [dir, ...below.flatMap((entry) => subtree(path.join(dir, entry.name)))];
  } catch {
    return [];
  }
}

function numbers(file: string): number[] {
  return read(file).split('\n').filter(Boolean).map(Number);
}

function read(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return '';
  }
}

function write(file: string, text: string): boolean {
  try {
    writeFileSync(file, text);
    return true;
  } catch {
    return false;
  }
}

function removeDir(dir: string): void {
  try {
    rmdirSync(dir);
  } catch {
    // absent, or a process is still leaving it: the caller looks again
  }
}
