import assert from 'node:assert/strict';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { it } from 'node:test';
import { healthProbe } from '../../src/app/serve/health-probe.ts';
import { never } from '../../src/core/linked-abort.ts';

const cases: readonly (readonly [string, (answer: ServerResponse) => void, string | RegExp])[] = [
  ['its instance', (answer) => answer.end('{"session_server_instance_id":"one"}'), 'one'],
  [
    'no answer of another server',
    (answer) => answer.writeHead(302, { location: '/elsewhere' }).end(),
    /status 302/,
  ],
  ['no answer without an end', (answer) => endless(answer), /longer than 65536 bytes/],
  ['no text that is no JSON', (answer) => answer.end('ok'), /JSON/],
];

for (const [title, answered, expected] of cases)
  it(`a probe of a client takes ${title}`, async () => {
    const server = createServer((request, answer) => {
      if (request.url === '/health') answered(answer);
      else answer.end('{"session_server_instance_id":"elsewhere"}');
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    try {
      const asked = healthProbe(30_000)(`127.0.0.1:${port}`, {
        wantsInstance: true,
        signal: never,
      });
      if (typeof expected === 'string') assert.equal(await asked, expected);
      else await assert.rejects(asked, expected);
    } finally {
      server.closeAllConnections();
      server.close();
    }
  });

/** As fast as it is taken. */
function endless(answer: ServerResponse): void {
  const more = (): void => {
    if (!answer.destroyed) answer.write(' '.repeat(16_384), more);
  };
  more();
}
