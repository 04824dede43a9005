import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The folder of Slipway's package.json. */
export const repositoryDir = dirname(dirname(dirname(fileURLToPath(import.meta.url))));

/** The Node that everything but set-up runs on: it comes with the development dependency `node`. */
export const slipwayNode = join(repositoryDir, 'node_modules', 'node', 'bin', 'node');
