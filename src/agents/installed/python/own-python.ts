/**
 * A Python that runs in any image with a shell: the interpreter of this machine with its library, the shared libraries that it and the packages want, and the
 * loader that brings these together. Nothing of the image's C library is used. The folder may be anywhere:
 *
 *     bin/python3        starts the interpreter; what it calls itself, so that it can start itself again
 *     libexec/           the interpreter, its loader and shared libraries
 *     lib/python3.X/     the standard library
 *     packages/          what pip installed, its commands in packages/bin
 */
import { chmod, copyFile, cp, mkdir, readdir, realpath, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import type { HostPython } from './host-python.ts';

export const packagesFolder = 'packages';
const binaries = 'libexec';
const interpreter = `${binaries}/python`;

/** Packages of the machine's own, and what no agent uses: tests, windows, building of Python. */
const leftOut =
  /^(__pycache__|site-packages|dist-packages|test|idlelib|tkinter|turtledemo|ensurepip|config-.*|_tkinter\..*|EXTERNALLY-MANAGED)$/;

/** Found by every start of it, whatever the distribution takes for the place of packages. */
const siteText = `import os, site, sys
site.addsitedir(os.path.join(sys.prefix, ${JSON.stringify(packagesFolder)}))
`;

/** Variables of the image and of its user are none of its; it takes those of the loader from nowhere else. */
const launcherText = (loader: string): string => `#!/bin/sh
root="\${0%/bin/*}"
exec "$root/${binaries}/${loader}" --inhibit-cache --library-path "$root/${binaries}" \\
  --argv0 "$root/bin/python3" "$root/${interpreter}" -I -X utf8 "$@"
`;

/** The interpreter and its library, as yet without what they are linked to. */
export async function copyPython(
  { executable, stdlib, libFolder }: HostPython,
  dir: string,
): Promise<void> {
  const library = path.join(dir, libFolder, path.basename(stdlib));
  await cp(stdlib, library, {
    ...{ recursive: true, dereference: true, preserveTimestamps: true },
    filter: (source) => source === stdlib || !leftOut.test(path.basename(source)),
  });
  await rm(path.join(library, 'sitecustomize.py'), { force: true });
  await writeFile(path.join(library, 'sitecustomize.py'), siteText);
  await mkdir(path.join(dir, binaries), { recursive: true });
  await copyFile(executable, path.join(dir, interpreter));
}

/** Files below `dir` that are linked to others. */
export async function linkedFiles(dir: string): Promise<readonly string[]> {
  const entries = await readdir(dir, { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile() && /\.so(\.[\d.]+)?$/.test(entry.name))
    .map((entry) => path.join(entry.parentPath, entry.name))
    .concat(path.join(dir, interpreter));
}

/** `listing`: what `ldd` says of them. false = there is no loader among these: the C library is not that of GNU. */
export async function copyLibraries(listing: string, dir: string): Promise<boolean> {
  const found = new Set(Array.from(listing.matchAll(/(\/\S+) \(0x/g), (match) => match[1] ?? ''));
  const own = `${await realpath(dir)}/`;
  let loader: string | null = null;
  for (const file of found) {
    if (file.startsWith(`${dir}/`) || file.startsWith(own)) continue;
    const name = path.basename(file);
    if (name.startsWith('ld-linux')) loader = name;
    await copyFile(file, path.join(dir, binaries, name));
  }
  if (loader === null) return false;
  await mkdir(path.join(dir, 'bin'), { recursive: true });
  const launcher = path.join(dir, 'bin/python3');
  await writeFile(launcher, launcherText(loader));
  for (const file of [launcher, path.join(dir, binaries, loader)]) await chmod(file, 0o755);
  return true;
}
