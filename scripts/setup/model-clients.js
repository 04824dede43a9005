/**
 * The vendors' Python clients of models, for the tests: `openai` and `anthropic` with what they stand on, in a folder of the cache; nothing of the machine's
 * Python changes. `tests/support/model-clients.ts` starts them.
 */
import { existsSync } from 'node:fs';
import { mkdir, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { cacheDir } from './cache-dir.js';
import { findPython, installPackages } from './python.js';

const packages = [
  ...['openai==3.57.0', 'anthropic==2.14.0'],
  ...['annotated-types==0.8.0', 'anyio==4.16.0', 'docstring-parser==0.18.0', 'h11==0.16.0'],
  ...['httpcore2==2.16.2', 'httpx2==2.16.2', 'idna==3.20', 'jiter==0.19.0'],
  ...['opentelemetry-api==1.45.2', 'pydantic==2.14.4', 'pydantic-core==2.50.5'],
  ...['sniffio==1.3.1', 'truststore==0.10.5', 'typing-extensions==4.16.0'],
  'typing-inspection==0.4.5',
];

/** Folder to put first on Python's path. It is complete when it exists. */
export function modelClientsDir() {
  return join(cacheDir(), 'model-clients-openai-3.57.0-anthropic-2.14.0');
}

/** The file in that folder that names the interpreter it was made for. */
export const interpreterFile = 'interpreter.txt';

/** @returns {Promise<string>} What was done. */
export async function provideModelClients() {
  if (existsSync(join(modelClientsDir(), interpreterFile))) return 'in the cache';
  const python = await findPython('the clients of models that the tests drive the gateway with');
  const draft = join(cacheDir(), `.model-clients-${process.pid}`);
  try {
    await mkdir(draft, { recursive: true });
    await installPackages(python, draft, packages);
    await writeFile(join(draft, interpreterFile), python);
    await rm(modelClientsDir(), { recursive: true, force: true });
    await rename(draft, modelClientsDir());
  } finally {
    await rm(draft, { recursive: true, force: true });
  }
  return `installed for ${python}`;
}
