import assert from 'node:assert/strict';
import { it } from 'node:test';
import { never } from '../../../src/core/linked-abort.ts';
import { RelayedProgram } from '../../../src/environments/skypilot/relay/relayed-program.ts';
import type { Executed, SkyService } from '../../../src/environments/skypilot/sky-service.ts';

it('a program that is killed while its start has not answered is followed to its end', async () => {
  const answered = Promise.withResolvers<Executed>();
  const said = (text: string): Executed => ({
    ...{ exitCode: 0, stdout: Buffer.from(text), stderr: Buffer.alloc(0) },
  });
  const calls: string[] = [];
  // Stands between us and the service's bridge, to give each answer at its moment.
  const service = {
    execute: async ({ argv }: { readonly argv: readonly string[] }) => {
      const script = argv[2] ?? '';
      if (script.includes('kill -KILL $all')) {
        calls.push('kill');
        // The shell tells of the kill before its keeper has noted the end.
        answered.resolve(said('slipway - - 0 7\n\nS2lsbGVkCg==\n'));
        return said('');
      }
      if (script.includes('mkfifo')) {
        calls.push('start');
        return await answered.promise;
      }
      calls.push('look');
      return said('slipway 137 - 0 0\n\n\n');
    },
  } as unknown as SkyService;
  const stop = new AbortController();
  const began = performance.now();
  const started = RelayedProgram.start(
    { service, sandbox: 's', ending: never, endedPrograms: [] },
    {
      ...{ hasInput: false, user: null, shell: 'bash', cwd: null, command: 'sleep 300' },
      ...{ until: 'news', env: {}, onOutput: () => undefined },
    },
    stop.signal,
  );
  stop.abort(new Error('too long'));
  await assert.rejects(started, /too long/);
  assert.deepEqual(calls, ['start', 'kill', 'look']);
  assert.ok(performance.now() - began < 5_000);
});
