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
      test(`${subject.agent}: a rollout of a server`, async () => {
        await rollOutOnce(subject.agent);
      });
      for (const one of [...(turn === undefined ? [] : [turn]), silentCase(20_000)])
        test(`${subject.agent}: ${one.name}`, async () => {
          await runCase(one, subject);
        });
    }
  },
);
