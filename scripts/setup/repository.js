import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The folder of Slipway's package.json. */
export const repositoryDir = dirname(dirname(dirname(fileURLToPath(import.meta.url))));

/** The Node that Slipway runs on: the one of the development dependency `node`, else the current one. */
export function slipwayNode() {
  const own = join(repositoryDir, 'node_modules', 'node', 'bin', 'node');
  return existsSync(own) ? own : process.execPath;
}
