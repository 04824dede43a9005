import { release } from 'node:os';
import type { StoredImage } from '../images/image-store.ts';
import type { SandboxFolder } from '../sandbox-folder.ts';

/**
 * Options of the overlay that is a sandbox's root. Layers are named relative to their folder, which must be the working folder of
 * the mount call: the kernel takes one page of options, and deep images would not fit otherwise.
 */
export function overlayOptions(
  folder: SandboxFolder,
  image: StoredImage,
  extra: readonly string[] = [],
): string {
  return [
    `lowerdir=${image.layers.join(':')}`,
    `upperdir=${escaped(folder.upper)}`,
    `workdir=${escaped(folder.work)}`,
    ...extra,
  ].join(',');
}

/** A sandbox's disk is thrown away, so nothing of it needs to reach the disk in time; without this, unmounting waits for it. */
export function volatileOption(kernel: string = release()): readonly string[] {
  const [major = 0, minor = 0] = kernel.split('.').map((part) => Number.parseInt(part, 10));
  return major > 5 || (major === 5 && minor >= 10) ? ['volatile'] : [];
}

function escaped(path: string): string {
  return path.replaceAll(/[\\:,]/g, '\\$&');
}

/** util-linux from 2.39 on splits options in a way that long layer lists do not survive. */
export const mountEnvironment = { LIBMOUNT_FORCE_MOUNT2: 'always' } as const;
