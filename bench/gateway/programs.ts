/** Programs of the system that a comparison needs. */
import { execFileSync } from 'node:child_process';
import { accessSync, constants } from 'node:fs';
import path from 'node:path';

const folders = [...(process.env['PATH'] ?? '').split(':'), '/usr/sbin', '/sbin'];

/** `packages`: of Debian, by the program that each brings. Installed by apt when we are root; else an error says what to install. */
export function needPrograms(packages: Readonly<Record<string, string>>): void {
  process.env['PATH'] = folders.join(':');
  const missing = Object.entries(packages).flatMap(([program, name]) =>
    isThere(program) ? [] : [name],
  );
  if (missing.length === 0) return;
  const words = ['install', '--yes', '--no-install-recommends', ...missing];
  if (process.getuid?.() !== 0) throw new Error(`run first: sudo apt-get ${words.join(' ')}`);
  execFileSync('apt-get', words, {
    stdio: ['ignore', 'ignore', 'inherit'],
    env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' },
  });
}

function isThere(program: string): boolean {
  return folders.some((folder) => {
    try {
      accessSync(path.join(folder, program), constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}
