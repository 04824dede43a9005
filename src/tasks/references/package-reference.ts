import { RolloutError } from '../../core/errors.ts';

/** `org/name[@ref]`: a task or a dataset in the package registry. */
export interface PackageReference {
  readonly org: string;
  readonly name: string;
  readonly ref: PackageRef;
}

export type PackageRef =
  | { readonly kind: 'tag'; readonly text: string }
  | { readonly kind: 'revision'; readonly text: string }
  /** `text` is `sha256:<64 hex>`. */
  | { readonly kind: 'digest'; readonly text: string };

const part = /^[a-zA-Z0-9][a-zA-Z0-9._-]*$/;
const digest = /^sha256:[0-9a-f]{64}$/;

/** Throws REFERENCE_INVALID. Without a ref the tag `latest` is meant. */
export function parsePackageReference(text: string): PackageReference {
  const at = text.lastIndexOf('@');
  const full = at === -1 ? text : text.slice(0, at);
  const [org = '', name = '', ...rest] = full.split('/');
  if (rest.length > 0 || !isPackagePart(org) || !isPackagePart(name))
    throw new RolloutError('REFERENCE_INVALID', 'a package is named org/name[@ref]', {
      phase: 'resolve',
      field: 'name',
      remedy: 'Write letters, digits, `.`, `_` and `-` on both sides of one slash.',
    });
  return { org, name, ref: parsePackageRef(at === -1 ? 'latest' : text.slice(at + 1)) };
}

/** Digits are a revision, `sha256:…` is a digest, anything else a tag. */
export function parsePackageRef(text: string): PackageRef {
  if (/^\d+$/.test(text)) return { kind: 'revision', text };
  if (!text.startsWith('sha256:')) {
    if (text === '' || /[\0- \x7f]/.test(text))
      throw badRef('a tag has no blanks and is not empty');
    return { kind: 'tag', text };
  }
  if (!digest.test(text)) throw badRef('a digest is sha256: and 64 hexadecimal digits');
  return { kind: 'digest', text };
}

/** Usable as one component of a path and of a URL. */
export function isPackagePart(text: string): boolean {
  return part.test(text) && !text.includes('..');
}

function badRef(message: string): RolloutError {
  return new RolloutError('REFERENCE_INVALID', message, { phase: 'resolve', field: 'ref' });
}
