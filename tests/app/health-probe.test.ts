import assert from 'node:assert/strict';
import { lookup } from 'node:dns';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo, LookupFunction } from 'node:net';
import { it } from 'node:test';
import { healthProbe } from '../../src/app/serve/health-probe.ts';
import { resolveHost } from '../../src/app/serve/resolve-host.ts';
import { never } from '../../src/core/linked-abort.ts';
import { UrlPolicy } from '../../src/wire/url-policy.ts';

const open = new UrlPolicy({ allow: [], privateAddresses: 'allow' });
const closed = new UrlPolicy({ allow: [], privateAddresses: 'deny' });

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
      const asked = healthProbe({ timeoutMs: 30_000, policy: open, lookup })(`127.0.0.1:${port}`, {
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

const denied: readonly (readonly [string, string, LookupFunction])[] = [
  ['a name that has come to mean a private address', 'client.example', named('10.0.0.7')],
  ['a private address that is written out', '127.0.0.1', lookup],
  ['one of version 6', '[::1]', lookup],
];
for (const [title, host, find] of denied)
  it(`a probe does not go to ${title}, where those are denied`, async () => {
    const asked: string[] = [];
    const server = createServer((request, answer) => {
      asked.push(request.url ?? '');
      answer.end('{}');
    });
    await new Promise<void>((resolve) => server.listen(0, resolve));
    const { port } = server.address() as AddressInfo;
    try {
      const probe = healthProbe({ timeoutMs: 30_000, policy: closed, lookup: find });
      const options = { wantsInstance: false, signal: never };
      await assert.rejects(probe(`${host}:${port}`, options), /private/);
      assert.deepEqual(asked, []);
    } finally {
      server.close();
    }
  });

it('a name that nobody resolves has its end', async () => {
  const silent: LookupFunction = () => undefined;
  const probe = healthProbe({ timeoutMs: 50, policy: open, lookup: silent });
  const options = { wantsInstance: false, signal: never };
  await assert.rejects(probe('client.example:1', options), /no answer|not resolved/);
  await assert.rejects(
    resolveHost('client.example', { lookup: silent, ms: 50, signal: never }),
    /client\.example was not resolved within 0\.05 s/,
  );
});

function named(address: string): LookupFunction {
  return (_host, _options, found) => found(null, [{ address, family: 4 }]);
}

/** As fast as it is taken. */
function endless(answer: ServerResponse): void {
  const more = (): void => {
    if (!answer.destroyed) answer.write(' '.repeat(16_384), more);
  };
  more();
}
