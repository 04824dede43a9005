/** A process that resolves one task: `node fetch-once.ts CACHE REGISTRY_URL|- KEY|- ENTRY_JSON`; prints its folder. */
import { systemClock } from '../../../src/core/clock.ts';
import { never } from '../../../src/core/linked-abort.ts';
import { silentLogger } from '../../../src/core/logger.ts';
import { FileLocks } from '../../../src/store/file/file-lock.ts';
import { Git } from '../../../src/tasks/references/git.ts';
import { HttpRequests } from '../../../src/tasks/references/http-requests.ts';
import { ReferenceResolver } from '../../../src/tasks/references/reference-resolver.ts';
import { RegistryClient } from '../../../src/tasks/references/registry-client.ts';
import { taskEntrySchema } from '../../../src/wire/harbor/task-entry.ts';

const [cacheDir = '', baseUrl = '', key = '', entry = ''] = process.argv.slice(2);
const http = new HttpRequests({ fetch, clock: systemClock });
const resolver = new ReferenceResolver({
  cacheDir,
  baseDir: cacheDir,
  locks: new FileLocks(systemClock),
  registry: baseUrl === '-' ? null : new RegistryClient({ baseUrl, key }, http),
  git: new Git({ variables: process.env }),
  fetch,
  clock: systemClock,
  logger: silentLogger,
});
const [task] = await resolver.resolveTasks([taskEntrySchema.parse(JSON.parse(entry))], {
  signal: never,
});
console.log(task?.dir);
