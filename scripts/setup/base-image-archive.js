import { join } from 'node:path';
import { cacheDir } from './cache-dir.js';

/** The image that every bundled task starts from. */
export const baseImage = 'debian:bookworm-slim';

/** Raised when what the stand-in holds changes: the older archive is then replaced. */
const edition = 2;

/** How the archive's name begins in every edition. */
export const archivePrefix = baseImage.replace(':', '-');

/** Where archives of base images are kept; the environments read this folder. */
export function imageArchivesDir() {
  return join(cacheDir(), 'base-images');
}

/** The Docker archive that stands in for the base image where no registry answers. */
export function baseImageArchive() {
  return join(imageArchivesDir(), `${archivePrefix}.${edition}.tar`);
}
