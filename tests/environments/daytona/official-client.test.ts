import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { daytonaPeerDir } from '../../../scripts/setup/daytona-peer.js';
import { never } from '../../../src/core/linked-abort.ts';
import { fakeKey } from '../../fakes/daytona/daytona-service.ts';
import { LocalBench, whyNoRunc } from '../local/local-bench.ts';
import { DaytonaBench } from './daytona-bench.ts';

const run = promisify(execFile);
const program = join(import.meta.dirname, 'official-client.js');

test(
  'the official client finds in the fake what it expects of the service',
  {
    skip: whyNoRunc() ?? false,
  },
  async () => {
    assert.ok(existsSync(daytonaPeerDir()), 'no official client: npm run setup -- tests');
    using local = new LocalBench();
    const sandboxes = local.provider({ runtime: 'runc' });
    await sandboxes.preflight(never);
    const contextDir = await mkdtemp(join(tmpdir(), 'daytona-context-'));
    try {
      await writeFile(
        join(contextDir, 'Dockerfile'),
        'FROM debian:bookworm-slim\nCOPY data /copied\n',
      );
      await writeFile(join(contextDir, 'data'), 'from the context');
      await using bench = await DaytonaBench.open({ sandboxes });
      const argv = [program, daytonaPeerDir(), bench.service.apiUrl, fakeKey, contextDir];
      const { stdout } = await run(process.execPath, argv, { timeout: 120_000 });
      assert.deepEqual(JSON.parse(stdout), {
        state: 'started',
        isSame: true,
        listed: ['by-client'],
        waited: [3, 'out\n', 'err\n'],
        streams: ['got hello\n/tmp\n', 'no\n'],
        exitCode: 0,
        executed: [4, 'b'],
        file: 'content',
        isBlocked: false,
        snapshot: 'active',
        built: 'from the context',
        errors: ['DaytonaNotFoundError', 'DaytonaAuthenticationError', 'DaytonaValidationError'],
      });
      assert.deepEqual(bench.service.sandboxes, []);
    } finally {
      await rm(contextDir, { recursive: true, force: true });
      await sandboxes.close();
    }
  },
);
