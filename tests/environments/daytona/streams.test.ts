import assert from 'node:assert/strict';
import { test } from 'node:test';
import { never } from '../../../src/core/linked-abort.ts';
import { ServiceFaults } from '../../fakes/sandbox-host/service-faults.ts';
import { LocalBench, whyNoRunc } from '../local/local-bench.ts';
import { DaytonaBench } from './daytona-bench.ts';

test(
  'a stream that stays silent, or is cut, is opened again and loses nothing',
  {
    skip: whyNoRunc() ?? false,
  },
  async () => {
    using local = new LocalBench();
    const sandboxes = local.provider({ runtime: 'runc' });
    await sandboxes.preflight(never);
    const faults = new ServiceFaults();
    try {
      await using bench = await DaytonaBench.open({ sandboxes, faults });
      const environment = bench.provider({ silenceMs: 200 }).environment(bench.spec());
      await environment.start({ signal: never });

      faults.plant('half-open');
      const silent = await environment.exec({ command: 'echo out; echo err >&2; exit 5' }, never);
      assert.deepEqual([silent.stdout, silent.stderr, silent.exitCode], ['out\n', 'err\n', 5]);
      assert.equal(faults.count('half-open'), 1);

      const pieces: string[] = [];
      const cut = await environment.exec(
        {
          command: 'for i in 1 2 3 4 5 6; do echo $i; sleep 0.2; done',
          onOutput: (_stream, text) => {
            pieces.push(text);
            if (text.includes('2')) bench.service.cutStreams();
          },
        },
        never,
      );
      assert.equal(cut.stdout, '1\n2\n3\n4\n5\n6\n');
      assert.equal(pieces.join(''), cut.stdout);

      // The session of a program that has ended takes the next one; what stays in the background keeps its own.
      const sessions = (): number =>
        bench.service.requests.filter((line) => line.endsWith('/process/session')).length;
      const before = sessions();
      for (let index = 0; index < 3; index += 1) await environment.exec({ command: 'true' }, never);
      assert.ok(sessions() - before <= 1);
      await environment.destroy();
    } finally {
      await sandboxes.close();
    }
  },
);
