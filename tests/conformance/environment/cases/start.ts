import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { RolloutError } from '../../../../src/core/errors.ts';
import type { ConformanceCase } from '../adapter.ts';
import { output } from '../looking.ts';

export const startCases: readonly ConformanceCase[] = [
  {
    id: 'start.report',
    title: 'start resolves when exec works and says how long the image and the boot took',
    async run({ create, signal }) {
      const environment = create();
      const report = await environment.start({ signal });
      assert.ok(Number.isFinite(report.imageMs) && report.imageMs >= 0);
      assert.ok(Number.isFinite(report.bootMs) && report.bootMs > 0);
      assert.equal(await output(environment, 'echo up', signal), 'up');
    },
  },
  {
    id: 'start.admission',
    title: 'a start asks to be let in before it creates, and when it is refused nothing was made',
    async run({ create, provider, signal }) {
      const admitted = create();
      let isFirst: boolean | null = null;
      const admitCreate = async (): Promise<void> => {
        isFirst ??= !(await isListed(admitted.name));
      };
      const isListed = async (name: string): Promise<boolean> =>
        (await provider.list(signal)).some((sandbox) => sandbox.name === name);
      await admitted.start({ signal, admitCreate });
      assert.equal(isFirst, true);
      assert.equal(await isListed(admitted.name), true);

      const refused = create();
      const reason = new RolloutError('SANDBOX_HOURS_EXHAUSTED', 'no', { phase: 'environment' });
      const start = refused.start({ signal, admitCreate: () => Promise.reject(reason) });
      await assert.rejects(start, reason);
      assert.equal(await isListed(refused.name), false);
    },
  },
  {
    id: 'start.name',
    title: 'an environment keeps the name it was given, and touches nothing before start',
    async run({ create, spec, provider, signal }) {
      const { name } = spec();
      const environment = create({ name });
      assert.equal(environment.name, name);
      const found = await provider.list(signal);
      assert.ok(!found.some((sandbox) => sandbox.name === name));
      assert.equal(await environment.isAlive(signal), false);
    },
  },
  {
    id: 'start.workdir',
    title: 'the workdir of the spec is made when missing and is the default working folder',
    async run({ start, signal }) {
      const environment = await start({ workdir: '/made/for the task' });
      assert.equal(await output(environment, 'pwd', signal), '/made/for the task');
    },
  },
  {
    id: 'start.env',
    title: 'variables of the spec reach every command, literally',
    async run({ start, signal }) {
      const value = `a $HOME "quoted" 'single' \\ back\nsecond line=é`;
      const environment = await start({ env: { LITERAL: value, EMPTY: '' } });
      assert.equal(await output(environment, 'printf %s "$LITERAL"', signal), value);
      assert.equal(await output(environment, 'echo "${EMPTY-unset}"', signal), '');
    },
  },
  {
    id: 'start.extra-ca',
    title: 'the extra CA bundle is in the sandbox and named by the usual variables',
    async run({ start, signal, folder }) {
      const bundle = join(folder, 'ca.pem');
      const pem = '-----BEGIN CERTIFICATE-----\nY29uZm9ybWFuY2U=\n-----END CERTIFICATE-----\n';
      await writeFile(bundle, pem);
      const environment = await start({ extraCaBundle: bundle });
      for (const variable of ['SSL_CERT_FILE', 'NODE_EXTRA_CA_CERTS', 'PIP_CERT'])
        assert.match(
          await output(environment, `cat "$${variable}"`, signal),
          /Y29uZm9ybWFuY2U=/,
          variable,
        );
      // Most of these variables replace a tool's own list: the public roots have to stay.
      const count = await output(environment, 'grep -c BEGIN "$SSL_CERT_FILE"', signal);
      assert.ok(Number(count) > 50, `only ${count} certificates`);
    },
  },
  {
    id: 'start.absent-image',
    title: 'an image that is nowhere is IMAGE_NOT_FOUND',
    limitMs: 60_000,
    async run({ create, signal }) {
      const image = { kind: 'prebuilt', reference: 'slipway.invalid/absent:none' } as const;
      await assert.rejects(create({ image }).start({ signal }), { code: 'IMAGE_NOT_FOUND' });
    },
  },
  {
    id: 'start.already-aborted',
    title: 'start under a signal that has fired rejects with its reason and makes nothing',
    async run({ create, provider, signal }) {
      const environment = create();
      const reason = new Error('changed my mind');
      await assert.rejects(environment.start({ signal: AbortSignal.abort(reason) }), reason);
      const found = await provider.list(signal);
      assert.ok(!found.some(({ name }) => name === environment.name));
    },
  },
];
