/** Which version of a dataset is meant when none is given: `head`, else the highest by Python's version rules (PEP 440), else the last by text. */

/** null for an empty list. */
export function latestVersion(versions: readonly string[]): string | null {
  if (versions.includes('head')) return 'head';
  const ordered = versions
    .map((text) => ({ text, key: versionKey(text) }))
    .filter((version): version is { text: string; key: VersionKey } => version.key !== null)
    .sort((one, other) => compareKeys(one.key, other.key));
  return ordered.at(-1)?.text ?? versions.toSorted().at(-1) ?? null;
}

interface VersionKey {
  readonly numbers: readonly number[];
  /** Epoch first, then release without trailing zeros; both compared number by number. */
  readonly local: readonly (number | string)[];
}

const pattern =
  /^v?(?:(\d+)!)?(\d+(?:\.\d+)*)(?:[-_.]?(a|b|c|rc|alpha|beta|pre|preview)[-_.]?(\d*))?(?:-(\d+)|[-_.]?(post|rev|r)[-_.]?(\d*))?(?:[-_.]?(dev)[-_.]?(\d*))?(?:\+([a-z0-9]+(?:[-_.][a-z0-9]+)*))?$/i;

const preRanks: Readonly<Record<string, number>> = {
  a: 0,
  alpha: 0,
  b: 1,
  beta: 1,
  c: 2,
  rc: 2,
  pre: 2,
  preview: 2,
};

const releaseParts = 12;
const below = -1;
const above = Number.POSITIVE_INFINITY;

function versionKey(text: string): VersionKey | null {
  const match = pattern.exec(text.trim());
  if (match === null) return null;
  const [
    ,
    epoch,
    release = '',
    pre,
    preNumber,
    shortPost,
    post,
    postNumber,
    dev,
    devNumber,
    local,
  ] = match;
  const parts = release.split('.').map(Number);
  const isPost = shortPost !== undefined || post !== undefined;
  // A development release of a final version comes before its alphas.
  const preRank =
    pre !== undefined
      ? (preRanks[pre.toLowerCase()] ?? 0)
      : dev !== undefined && !isPost
        ? below
        : above;
  return {
    numbers: [
      Number(epoch ?? 0),
      ...Array.from({ length: releaseParts }, (_, index) => parts[index] ?? 0),
      preRank,
      Number(preNumber ?? 0),
      isPost ? Number(shortPost ?? postNumber ?? 0) : below,
      dev === undefined ? above : Number(devNumber ?? 0),
    ],
    local: (local ?? '')
      .toLowerCase()
      .split(/[-_.]/)
      .filter((part) => part !== '')
      .map((part) => (/^\d+$/.test(part) ? Number(part) : part)),
  };
}

function compareKeys(one: VersionKey, other: VersionKey): number {
  for (const [index, number] of one.numbers.entries()) {
    const against = other.numbers[index] ?? 0;
    if (number !== against) return number < against ? -1 : 1;
  }
  for (let index = 0; index < Math.max(one.local.length, other.local.length); index += 1) {
    const difference = compareLocal(one.local[index], other.local[index]);
    if (difference !== 0) return difference;
  }
  return 0;
}

/** Numbers beat words, and more parts beat fewer. */
function compareLocal(
  one: number | string | undefined,
  other: number | string | undefined,
): number {
  if (one === other) return 0;
  if (one === undefined) return -1;
  if (other === undefined) return 1;
  if (typeof one !== typeof other) return typeof one === 'number' ? 1 : -1;
  return one < other ? -1 : 1;
}
