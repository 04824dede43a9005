import { join } from 'node:path';
import { cacheDir } from './cache-dir.js';

/** The image that every bundled task starts from. */
export const baseImage = 'debian:bookworm-slim';

/** Where archives of base images are kept; the environments read this folder. */
export function imageArchivesDir() {
  return join(cacheDir(), 'base-images');
}

/** The Docker archive that stands in for the base image where no registry answers. */
export function baseImageArchive() {
  return join(imageArchivesDir(), `${baseImage.replace(':', '-')}.tar`);
}
