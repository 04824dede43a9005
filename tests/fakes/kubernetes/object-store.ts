/** Objects of one kind in one namespace, as an API server keeps them: versions that only grow, and a log of events from which a watch goes on. */
import { randomUUID } from 'node:crypto';

export interface Metadata {
  readonly name: string;
  readonly namespace?: string;
  readonly uid?: string;
  readonly resourceVersion?: string;
  readonly creationTimestamp?: string;
  readonly deletionTimestamp?: string;
  readonly deletionGracePeriodSeconds?: number;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
}

export interface ApiObject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: Metadata;
  readonly [field: string]: unknown;
}

export interface WatchEvent {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED';
  readonly object: ApiObject;
  readonly version: number;
}

/** The version counter of a cluster. */
export interface Versions {
  next(): number;
  readonly current: number;
}

export function versions(): Versions {
  let current = 1000;
  return {
    next: () => (current += 1),
    get current() {
      return current;
    },
  };
}

export class ObjectStore {
  readonly #versions: Versions;
  readonly #objects = new Map<string, ApiObject>();
  readonly #listeners = new Set<(event: WatchEvent) => void>();
  readonly #log: WatchEvent[] = [];

  constructor(counter: Versions) {
    this.#versions = counter;
  }

  get(name: string): ApiObject | null {
    return this.#objects.get(name) ?? null;
  }

  list(): readonly ApiObject[] {
    return [...this.#objects.values()];
  }

  add(object: ApiObject): ApiObject {
    const created = {
      ...object,
      metadata: {
        ...object.metadata,
        uid: randomUUID(),
        creationTimestamp: new Date().toISOString(),
      },
    };
    return this.#put('ADDED', created);
  }

  /** Replaces an object that is there. */
  change(object: ApiObject): ApiObject {
    return this.#put('MODIFIED', object);
  }

  remove(name: string): void {
    const object = this.#objects.get(name);
    if (object === undefined) return;
    this.#objects.delete(name);
    const version = this.#versions.next();
    this.#tell({ type: 'DELETED', object: withVersion(object, version), version });
  }

  /** Everything behind a version, and what comes; null when the log does not reach back so far. */
  watch(since: number, listener: (event: WatchEvent) => void): (() => void) | null {
    const [oldest] = this.#log;
    if (this.#log.length === maxLog && oldest !== undefined && since < oldest.version - 1)
      return null;
    for (const event of this.#log) if (event.version > since) listener(event);
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  #put(type: 'ADDED' | 'MODIFIED', object: ApiObject): ApiObject {
    const version = this.#versions.next();
    const kept = withVersion(object, version);
    this.#objects.set(object.metadata.name, kept);
    this.#tell({ type, object: kept, version });
    return kept;
  }

  #tell(event: WatchEvent): void {
    this.#log.push(event);
    if (this.#log.length > maxLog) this.#log.shift();
    for (const listener of this.#listeners) listener(event);
  }
}

const maxLog = 2000;

function withVersion(object: ApiObject, version: number): ApiObject {
  return { ...object, metadata: { ...object.metadata, resourceVersion: String(version) } };
}

/** `key=value`, `key==value`, `key!=value` and `key`, joined by commas. */
export function selects(
  selector: string | null,
  labels: Readonly<Record<string, string>>,
): boolean {
  if (selector === null || selector === '') return true;
  return selector.split(',').every((term) => {
    const [, key = '', operator, value = ''] = /^([^=!]+)(==|=|!=)?(.*)$/.exec(term.trim()) ?? [];
    if (operator === undefined) return key in labels;
    return operator === '!=' ? labels[key] !== value : labels[key] === value;
  });
}
