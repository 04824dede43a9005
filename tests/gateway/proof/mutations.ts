/** A JSON value made wrong at random places, by a seed; what stands on the way to one chosen text stays as it is. */
import type { RandomDraws } from './random-draws.ts';

type Path = readonly (string | number)[];

/** What no field expects everywhere. */
const junk: readonly unknown[] = [
  ...[null, true, 0, -1, 1.5, 1e308, '', 'x', '🙂', '\u0000', '__proto__', [], {}],
  ...[[null], [[]], { type: 'nothing' }, { type: null }, { ['__proto__']: { type: 'text' } }],
  'ä'.repeat(300),
];

/** All places in a value, itself left out. */
export function pathsIn(value: unknown, before: Path = []): readonly Path[] {
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([name, inner]) => {
    const path = [...before, Array.isArray(value) ? Number(name) : name];
    return [path, ...pathsIn(inner, path)];
  });
}

export function valueAt(value: unknown, path: Path): unknown {
  return path.reduce<unknown>((inner, name) => (inner as Record<string, unknown>)[name], value);
}

export function withValue(value: unknown, path: Path, made: unknown): unknown {
  const copy: unknown = structuredClone(value);
  const last = path.at(-1);
  const parent = valueAt(copy, path.slice(0, -1)) as Record<string, unknown>;
  if (last !== undefined) parent[last] = made;
  return copy;
}

/** `kept`: a place that stays, with all above it; null = none. */
export function mutated(value: unknown, draws: RandomDraws, kept: Path | null): unknown {
  let made: unknown = structuredClone(value);
  for (let left = 1 + draws.below(3); left > 0; left -= 1) made = mutatedOnce(made, draws, kept);
  return made;
}

function mutatedOnce(value: unknown, draws: RandomDraws, kept: Path | null): unknown {
  const isFree = (path: Path): boolean =>
    kept === null || path.some((name, index) => name !== kept[index]);
  const paths = pathsIn(value).filter(isFree);
  if (paths.length === 0) return value;
  const path = draws.pick(paths);
  const [parentPath, last] = [path.slice(0, -1), path.at(-1)];
  const copy: unknown = structuredClone(value);
  const parent = valueAt(copy, parentPath);
  switch (draws.below(4)) {
    case 0:
      return withValue(copy, path, draws.pick(junk));
    case 1:
      return withValue(copy, path, valueAt(copy, draws.pick(paths)));
    case 2:
      // A place in a list is taken out only where nothing that stays moves.
      if (Array.isArray(parent)) return withValue(copy, path, null);
      Reflect.deleteProperty(parent as object, String(last));
      return copy;
    default:
      if (Array.isArray(parent)) parent.push(structuredClone(valueAt(copy, path)));
      else (parent as Record<string, unknown>)[draws.pick(strangeNames)] = draws.pick(junk);
      return copy;
  }
}

const strangeNames = ['unknown_field', 'cache_control', 'type', 'role', 'constructor', '', 'n'];
