/** A trial in a sandbox, from the inside: what of the server's and the controller's secrets is to be seen there, and what of the server can be reached. */
import { cpSync, mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { startServeProcess } from '../../support/serve-process.ts';
import { bundledTasksDir } from '../../support/slipway-cli.ts';
import { until } from '../../support/until.ts';
import { canary } from './guarded-server.ts';
import { findBelow, findIn, problemsOf, type Find } from './secret-search.ts';

const dump = '/logs/artifacts/dump.txt';

/** Prints everything that names itself in the sandbox, then solves the task. */
const solution = (controlPort: number): string => `#!/bin/bash
mkdir -p /logs/artifacts
{
  echo BEGIN; id; env; cat /proc/*/environ /proc/*/cmdline /proc/*/comm; ls -laR /logs /root /home /tmp /run
  cat /etc/passwd /proc/mounts /proc/self/mountinfo
  if (exec 3<>/dev/tcp/127.0.0.1/${controlPort}) && exec 3<>/dev/tcp/127.0.0.1/${controlPort}; then
    printf 'GET /api/v1/rollouts HTTP/1.1\\r\\nHost: localhost\\r\\nConnection: close\\r\\n\\r\\n' >&3; timeout 5 cat <&3
  else echo UNREACHED; fi
  echo END
} > ${dump} 2>&1 < /dev/null
awk -F, '$1 == "harbour-café" { sum += $2 } END { print sum }' /app/orders.csv > /app/answer.txt
`;

export interface InsideReport {
  readonly dumpBytes: number;
  readonly reward: number | null;
  /** What the control server answered from inside; null = it was not reached. */
  readonly controlAnswer: string | null;
  readonly problems: readonly string[];
}

/** `root`: an empty folder for everything. */
export async function lookFromInside(root: string): Promise<InsideReport> {
  const secrets = new Map(
    ['control key', 'controller key', 'llm key', 'callback token'].map((what) => [
      `the ${what}`,
      canary(what.replaceAll(' ', '-')),
    ]),
  );
  const secretOf = (what: string): string => secrets.get(`the ${what}`) ?? '';
  mkdirSync(path.join(root, 'state'));
  const variables = { SERVER_CONTROL_KEY: secretOf('control key') };
  const dataDir = path.join(root, 'data');
  await using server = await startServeProcess(
    [
      ...['--backend', 'native', '--backend-native-agent', 'oracle', '--data-dir', dataDir],
      ...['--control-key', 'env:SERVER_CONTROL_KEY'],
    ],
    { stateDir: path.join(root, 'state'), variables },
  );
  const task = path.join(root, 'task');
  cpSync(path.join(bundledTasksDir, 'file-answer'), task, { recursive: true });
  writeFileSync(path.join(task, 'solution/solve.sh'), solution(Number(new URL(server.url).port)));

  const ask = async (url: string, body?: object) =>
    await fetch(`${server.url}${url}`, {
      headers: {
        authorization: `Bearer ${secretOf('control key')}`,
        'content-type': 'application/json',
      },
      ...(body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) }),
    });
  const callback = `http://127.0.0.1:9/c?token=${secretOf('callback token')}`;
  const accepted = await ask('/rollout', {
    ...{
      rollout_id: 'inside',
      initial_messages: [],
      chat_completions_url: 'http://127.0.0.1:9/v1',
    },
    ...{ completion_callback_url: callback, grader_callback_url: callback },
    ...{ controller_api_key: secretOf('controller key'), llm_api_key: secretOf('llm key') },
    metadata: { harbor_task: task },
  });
  if (accepted.status !== 202) throw new Error(`answered ${accepted.status}`);
  const status = async () =>
    (await (await ask('/rollout/inside/status')).json()) as {
      status: string;
      reward: number | null;
    };
  await until('the trial ends', async () => /success|failure/.test((await status()).status));
  const file = await fileOf(ask);
  const text = file ?? '';
  const problems: string[] = [];
  if (!/^BEGIN$[^]*^END$/m.test(text)) problems.push(`there is no dump: ${text.slice(0, 200)}`);
  const finds: Find[] = findIn(text, 'the sandbox', secrets);
  finds.push(...findBelow(dataDir, secrets, (name) => !name.startsWith('store.')));
  const controlAnswer = text.includes('UNREACHED')
    ? null
    : (/^HTTP\/1\.1 .*$/m.exec(text)?.[0] ?? '');
  if (controlAnswer !== null && !controlAnswer.includes(' 401 '))
    problems.push(`the control server answered ${controlAnswer}`);
  return {
    ...{ dumpBytes: text.length, controlAnswer, reward: (await status()).reward },
    problems: [...problems, ...problemsOf(finds)],
  };
}

async function fileOf(ask: (url: string) => Promise<Response>): Promise<string | null> {
  let path: string | undefined;
  await until('the archive has the dump', async () => {
    const { files } = (await (await ask('/api/v1/rollouts/inside/files')).json()) as {
      files: { path: string }[];
    };
    path = files.find((file) => file.path.endsWith('dump.txt'))?.path;
    return path !== undefined;
  });
  return path === undefined
    ? null
    : await (await ask(`/api/v1/rollouts/inside/files/${path}`)).text();
}
