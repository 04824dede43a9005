import assert from 'node:assert/strict';
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { systemClock } from '../../../src/core/clock.ts';
import { never } from '../../../src/core/linked-abort.ts';
import { openAccess } from '../../../src/environments/kubernetes/access/cluster-access.ts';

describe('a kubeconfig', () => {
  let folder = '';
  before(async () => {
    folder = await mkdtemp(path.join(tmpdir(), 'kubeconfig-'));
  });
  after(() => rm(folder, { recursive: true, force: true }));

  const base64 = (text: string): string => Buffer.from(text).toString('base64');

  async function access(user: object, context: string | null = null, cluster: object = {}) {
    const document = {
      'current-context': 'one',
      clusters: [
        { name: 'c', cluster: { server: 'https://cluster.test:6443/', ...cluster } },
        { name: 'd', cluster: { server: 'https://other.test' } },
      ],
      users: [{ name: 'u', user }],
      contexts: [
        { name: 'one', context: { cluster: 'c', user: 'u', namespace: 'of-context' } },
        { name: 'two', context: { cluster: 'd', user: 'u' } },
      ],
    };
    const file = path.join(folder, 'config');
    await writeFile(file, JSON.stringify(document));
    const ports = { hostVariables: { ...process.env, KUBECONFIG: file }, clock: systemClock };
    return await openAccess({ kubeconfig: null, context, namespace: null }, ports);
  }

  const asked = { isRefused: false, signal: never };

  test('gives server, namespace, certificates in place and beside, and the token', async () => {
    await writeFile(path.join(folder, 'key.pem'), 'the key');
    const opened = await access(
      { token: 'secret', 'client-certificate-data': base64('the cert'), 'client-key': 'key.pem' },
      null,
      { 'certificate-authority-data': base64('the ca'), 'tls-server-name': 'inner.test' },
    );
    const { server, namespace, tls } = opened;
    assert.deepEqual([server, namespace], ['https://cluster.test:6443', 'of-context']);
    assert.deepEqual(tls, { ca: 'the ca', servername: 'inner.test', rejectUnauthorized: true });
    const wanted = { token: 'secret', cert: 'the cert', key: 'the key' };
    assert.partialDeepStrictEqual(await opened.credentials(asked), wanted);
  });

  test('gives the context that is named, whose namespace is default where it names none', async () => {
    const { server, namespace } = await access({}, 'two');
    assert.deepEqual([server, namespace], ['https://other.test', 'default']);
  });

  test('runs its exec plugin once, and again when its credential was refused or has ended', async () => {
    const plugin = path.join(folder, 'plugin');
    const count = path.join(folder, 'count');
    await writeFile(
      plugin,
      `#!/bin/sh\necho "$KUBERNETES_EXEC_INFO" | grep -q ExecCredential || exit 1\necho x >> ${count}\n` +
        `echo "{\\"status\\":{\\"token\\":\\"$1$(wc -l <${count})$OWN\\"}}"\n`,
    );
    await chmod(plugin, 0o755);
    const exec = {
      apiVersion: 'client.authentication.k8s.io/v1',
      command: './plugin',
      args: ['t'],
      env: [{ name: 'OWN', value: '!' }],
    };
    const opened = await access({ exec });
    assert.equal((await opened.credentials(asked)).token, 't1!');
    assert.equal((await opened.credentials(asked)).token, 't1!');
    assert.equal((await opened.credentials({ ...asked, isRefused: true })).token, 't2!');
  });

  test('an exec plugin that fails is an unavailable environment', async () => {
    const exec = { apiVersion: 'client.authentication.k8s.io/v1', command: 'false' };
    const opened = await access({ exec });
    await assert.rejects(opened.credentials(asked), { code: 'ENVIRONMENT_UNAVAILABLE' });
  });

  test('what is not there or not understood is refused by name', async () => {
    const invalid = { code: 'CONFIG_INVALID' };
    await assert.rejects(access({}, 'three'), { ...invalid, message: /no context "three"/ });
    await assert.rejects(access({ 'auth-provider': {} }), { ...invalid, message: /auth-provider/ });
    await assert.rejects(access({ username: 'u' }), { ...invalid, message: /username/ });
    await assert.rejects(access({}, null, { 'proxy-url': 'http://p' }), /proxy-url/);
  });
});
