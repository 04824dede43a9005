/** Real command line agents of the vendors, unchanged, in real sandboxes; their programs are installed once on this machine. */
import { describe, test } from 'node:test';
import { whyNoRunc } from '../environments/local/local-bench.ts';
import { rollOutOnce } from './clis/rolled-out.ts';
import { cliCases, cliSubjects, runCase, silentCase } from './clis/cli-cases.ts';

const [turn] = cliCases;

describe(
  'command line agents',
  { skip: whyNoRunc() ?? false, timeout: 600_000, concurrency: true },
  () => {
    for (const subject of cliSubjects) {
      // What speaks the upstream's own dialect is passed on as it comes: nothing of ours keeps it awake.
      const isTranslated = subject.path !== '/v1/chat/completions';
      if (isTranslated)
        test(`${subject.agent}: a rollout of a server`, async () => {
          await rollOutOnce(subject.agent);
        });
      const silent = isTranslated ? [silentCase(20_000)] : [];
      for (const one of [...(turn === undefined ? [] : [turn]), ...silent])
        test(`${subject.agent}: ${one.name}`, async () => {
          await runCase(one, subject);
        });
    }
  },
);
