/**
 * Makes `node-llama-cpp` be found in the cache folder that set-up fills. Imported in a test's own process, or given to `slipway` as
 * `node --import`: the product itself looks for the package only where packages are.
 */
import { existsSync } from 'node:fs';
import { registerHooks } from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { llamaDir } from '../../scripts/setup/llama.js';

const entry = join(llamaDir(), 'node_modules/node-llama-cpp/dist/index.js');

export const isLlamaCached = existsSync(entry);

if (isLlamaCached)
  registerHooks({
    resolve: (specifier, context, next) =>
      next(specifier === 'node-llama-cpp' ? pathToFileURL(entry).href : specifier, context),
  });
