/** Kinds of settings: how a value is read from a document, from the text of a flag or variable, and how it is described. */

import { delimiter, resolve } from 'node:path';
import { samplingPinsSchema, type SamplingPins } from '../../wire/rollout/route-rules.ts';
import { readCodeReference } from '../../wire/runner/code-reference.ts';

export type Read<T> = { readonly value: T } | { readonly problem: string };

export interface Kind<T> {
  /** For people, after "expected": `a whole number of at least 1`. */
  readonly expects: string;
  /** What stands for the value in help: `N`. */
  readonly placeholder: string;
  /** Several values of a flag are one value; a variable holds them with commas. */
  readonly isList: boolean;
  /** `isText`: it comes from a flag or variable, where everything is text. */
  read(value: unknown, isText: boolean): Read<T>;
  /** As it stands in a document. */
  show(value: T): unknown;
  /** With its relative paths starting at `dir`; absent = it holds no path. */
  locate?(value: T, dir: string): T;
}

export interface Setting<T> {
  readonly kind: Kind<T>;
  /** What it does, one sentence without a full stop. */
  readonly what: string;
  /** The key in the document, where it is not the name in snake case. */
  readonly key?: string;
  /** Without the leading dashes, where it is not the path with dashes. */
  readonly flag?: string;
  /** Read when the setting's own variable is not set. */
  readonly otherVariable?: string;
  readonly fallback: Fallback<T>;
}

export type Fallback<T> =
  | { readonly value: T }
  /** Of other settings, which have a value by then: those that stand before it in the table. */
  | { readonly says: string; readonly of: (get: (path: string) => unknown) => T };

const simple = <T>(
  expects: string,
  placeholder: string,
  read: (value: unknown, isText: boolean) => Read<T>,
): Kind<T> => ({ expects, placeholder, isList: false, read, show: (value) => value });

const refuse = (expects: string): { readonly problem: string } => ({
  problem: `expected ${expects}`,
});

/** An empty text counts as none. */
export const text: Kind<string | null> = simple('a text', 'TEXT', (value) =>
  typeof value === 'string' ? { value: value === '' ? null : value } : refuse('a text'),
);

/** A text where an empty one would mean something else than is written: an address of nothing is every address. */
export const word: Kind<string> = simple('a text', 'TEXT', (value) =>
  typeof value === 'string' && value.trim() !== '' ? { value } : refuse('a text that is not empty'),
);

export const folder: Kind<string | null> = {
  ...text,
  expects: 'a path',
  placeholder: 'DIR',
  locate: (value, dir) => (value === null ? null : resolve(dir, value)),
};

/** A program: a path, or a name on PATH. */
export const program: Kind<string> = {
  ...word,
  expects: 'a path of a program, or its name on PATH',
  placeholder: 'PROGRAM',
  locate: (value, dir) => (value.includes('/') ? resolve(dir, value) : value),
};

/** Folders, with the separator of PATH between them in flags and variables. */
export const searchPath: Kind<readonly string[]> = {
  expects: 'a list of folders',
  placeholder: 'DIR',
  isList: true,
  read(value, isText) {
    const parts: unknown = typeof value === 'string' ? [value] : value;
    if (!Array.isArray(parts) || !parts.every((part) => typeof part === 'string'))
      return refuse('a list of folders');
    const folders = isText ? parts.flatMap((part) => part.split(delimiter)) : parts;
    return { value: folders.filter((one) => one !== '') };
  },
  show: (value) => value,
  locate: (value, dir) => value.map((one) => resolve(dir, one)),
};

/** A class in a module. */
export const moduleExport: Kind<string | null> = {
  ...text,
  expects: 'path/to/module.ts:ExportedClass, path/to/file.py:Class or module:Class',
  placeholder: 'CLASS',
  locate: (value, dir) => (value === null ? null : locateReference(value, dir)),
};

function locateReference(value: string, dir: string): string {
  return readCodeReference(value)?.module == null ? resolve(dir, value) : value;
}

export function choice<const T extends string>(...choices: readonly T[]): Kind<T> {
  const expects = `one of ${choices.join(', ')}`;
  return simple(expects, choices.join('|'), (value) => {
    const found = choices.find((one) => one === value);
    return found === undefined ? refuse(expects) : { value: found };
  });
}

export function whole(least: number, most = Number.MAX_SAFE_INTEGER): Kind<number> {
  const bound =
    most === Number.MAX_SAFE_INTEGER ? `of at least ${least}` : `from ${least} to ${most}`;
  const expects = `a whole number ${bound}`;
  return simple(expects, 'N', (value, isText) => {
    const number = isText && /^\d+$/.test(String(value)) ? Number(value) : value;
    const isRight = Number.isSafeInteger(number) && Number(number) >= least;
    return isRight && Number(number) <= most ? { value: Number(number) } : refuse(expects);
  });
}

export function number(least: number, most = Number.MAX_VALUE): Kind<number> {
  const bound = most === Number.MAX_VALUE ? `of at least ${least}` : `from ${least} to ${most}`;
  const expects = `a number ${bound}`;
  return simple(expects, 'N', (value, isText) =>
    readNumber(value, isText, { least, most, expects }),
  );
}

/** Seconds in documents, flags and variables; milliseconds inside. */
export function seconds(least: number): Kind<number> {
  const expects = `seconds of at least ${least}`;
  const most = Number.MAX_SAFE_INTEGER / 1000;
  return {
    ...simple(expects, 'SECONDS', (value: unknown, isText: boolean): Read<number> => {
      const found = readNumber(value, isText, { least, most, expects });
      return 'problem' in found ? found : { value: found.value * 1000 };
    }),
    show: (ms) => ms / 1000,
  };
}

function readNumber(
  value: unknown,
  isText: boolean,
  {
    least,
    most,
    expects,
  }: { readonly least: number; readonly most: number; readonly expects: string },
): Read<number> {
  const found = isText && String(value).trim() !== '' ? Number(value) : value;
  const isRight = typeof found === 'number' && found >= least && found <= most;
  return isRight ? { value: found } : refuse(expects);
}

export const flag: Kind<boolean> = simple('true or false', 'true|false', (value, isText) => {
  if (typeof value === 'boolean') return { value };
  if (isText && (value === 'true' || value === 'false')) return { value: value === 'true' };
  return refuse('true or false');
});

const secretForm = /^(?:env:[A-Za-z_][A-Za-z0-9_]*|file:.+)$/;

/** Where a secret is, never the secret: `env:NAME` or `file:PATH`. */
export const secretPlace: Kind<string | null> = {
  ...simple<string | null>('env:NAME or file:PATH', 'PLACE', (value) => {
    if (value === '') return { value: null };
    // The value may be a secret that somebody wrote here: it is not repeated.
    return typeof value === 'string' && secretForm.test(value)
      ? { value }
      : { problem: 'expected env:NAME or file:PATH, never the secret itself' };
  }),
  locate(value, dir) {
    if (value?.startsWith('file:') !== true) return value;
    return `file:${resolve(dir, value.slice('file:'.length))}`;
  },
};

/** Any table of a document; JSON in flags and variables. */
export const table: Kind<Readonly<Record<string, unknown>>> = simple(
  'a table',
  'JSON',
  (value, isText) => {
    let found = value;
    if (isText)
      try {
        found = JSON.parse(String(value));
      } catch {
        return refuse('a JSON object');
      }
    return typeof found === 'object' && found !== null && !Array.isArray(found)
      ? { value: found as Readonly<Record<string, unknown>> }
      : refuse('a table');
  },
);

/** Sampling parameters of chat completions, with the values that hold. */
export const samplingPins: Kind<SamplingPins> = {
  ...table,
  expects: 'a table of sampling parameters',
  read(value, isText) {
    const found = table.read(value, isText);
    if ('problem' in found) return found;
    const read = samplingPinsSchema.safeParse(found.value);
    if (read.success) return { value: read.data as SamplingPins };
    const [issue] = read.error.issues;
    const at = issue?.path.join('.') ?? '';
    return { problem: `${at === '' ? '' : `${at}: `}${issue?.message ?? 'not what it may be'}` };
  },
};

/** A table, or an object of Python by its reference. */
export const tableOrObject: Kind<Readonly<Record<string, unknown>> | string> = {
  ...simple<Readonly<Record<string, unknown>> | string>(
    'a table, or path/to/file.py:NAME or module:NAME',
    'JSON',
    (value, isText) =>
      typeof value === 'string' && readCodeReference(value) !== null
        ? { value }
        : table.read(value, isText),
  ),
  locate: (value, dir) => (typeof value === 'string' ? locateReference(value, dir) : value),
};

/** Secrets by name, each by its place. */
export const secretTable: Kind<Readonly<Record<string, string>>> = {
  ...simple('a table of env:NAME or file:PATH', 'JSON', (value: unknown, isText: boolean) => {
    const found = table.read(value, isText);
    if ('problem' in found) return found;
    for (const place of Object.values(found.value))
      if (typeof place !== 'string' || !secretForm.test(place))
        return { problem: 'expected env:NAME or file:PATH for each, never the secret itself' };
    return { value: found.value as Readonly<Record<string, string>> };
  }),
  locate: (value, dir) =>
    Object.fromEntries(
      Object.entries(value).map(([name, place]) => [
        name,
        secretPlace.locate?.(place, dir) ?? place,
      ]),
    ),
};

/** Several of them; with commas in a variable, repeated as a flag. */
export function listOf<T>(kind: Kind<T | null> | Kind<T>): Kind<readonly T[]> {
  const one = kind as Kind<T | null>;
  const expects = `a list, each ${one.expects}`;
  return {
    expects,
    placeholder: one.placeholder,
    isList: true,
    read(value, isText) {
      const parts: unknown =
        isText && typeof value === 'string'
          ? value.split(',').map((part) => part.trim())
          : typeof value === 'string'
            ? [value]
            : value;
      if (!Array.isArray(parts)) return refuse(expects);
      const values: T[] = [];
      for (const part of parts as unknown[]) {
        if (part === '') continue;
        const found = one.read(part, isText);
        if ('problem' in found) return found;
        if (found.value !== null) values.push(found.value);
      }
      return { value: values };
    },
    show: (values) => values.map((value) => one.show(value)),
    locate: (values, dir) =>
      values.map((value) => (one.locate === undefined ? value : (one.locate(value, dir) as T))),
  };
}

/** A task as a row's metadata names it: the text of `harbor_task`, or a table with the keys of a repository. */
export type TaskReference = string | Readonly<Record<string, unknown>>;

/** A path that begins with a dot is one of the file; an empty list is not none. */
export const taskReferences: Kind<readonly TaskReference[]> = {
  ...simple(
    'a list of tasks, each a text or a table',
    'TASK',
    (value: unknown, isText: boolean) => {
      const parts: unknown =
        typeof value === 'string' ? (isText ? value.split(',') : [value]) : value;
      const isRight = (part: unknown): boolean =>
        typeof part === 'string' || !('problem' in table.read(part, false));
      if (!Array.isArray(parts) || !parts.every(isRight))
        return refuse('a list of tasks, each a text or a table');
      const found = parts as TaskReference[];
      return { value: found.map((part) => (typeof part === 'string' ? part.trim() : part)) };
    },
  ),
  isList: true,
  show: (tasks) => tasks,
  locate: (tasks, dir) =>
    tasks.map((task) => {
      if (typeof task === 'string') return located(task, dir);
      const { harbor_task: at } = task;
      return typeof at === 'string' ? { ...task, harbor_task: located(at, dir) } : task;
    }),
};

/** Tasks as above, or `true` for the only one that there is. */
export const preparation: Kind<readonly TaskReference[] | boolean | null> = {
  ...taskReferences,
  expects: 'true, or a list of tasks, each a text or a table',
  read: (value, isText) => {
    const switched = flag.read(value, isText);
    return 'value' in switched ? switched : taskReferences.read(value, isText);
  },
  show: (value) => value,
  locate: (value, dir) =>
    Array.isArray(value)
      ? (taskReferences.locate?.(value as readonly TaskReference[], dir) ?? null)
      : value,
};

/** A text is a file, in flags and variables too; a list is what pip is asked for. */
export const requirements: Kind<string | readonly string[] | null> = {
  ...simple('a path, or a list of requirements', 'FILE', (value: unknown) => {
    if (value === '') return { value: null };
    const isList = Array.isArray(value) && value.every((one) => typeof one === 'string');
    return typeof value === 'string' || isList
      ? { value: value as string | readonly string[] }
      : refuse('a path, or a list of requirements');
  }),
  locate: (value, dir) => (typeof value === 'string' ? resolve(dir, value) : value),
};

function located(task: string, dir: string): string {
  return task.startsWith('.') ? resolve(dir, task) : task;
}
