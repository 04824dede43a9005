import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import { never } from '../../../../src/core/linked-abort.ts';
import { findProgram } from '../../../../src/environments/local/host-command.ts';
import { baseImage, LocalBench, whyNoRunc } from '../local-bench.ts';

const lack = whyNoRunc() ?? (findProgram('buildah') === null ? 'buildah is not installed' : null);

test(
  'the steps of a Dockerfile find the extra certificates beside the public ones',
  { skip: lack ?? false, timeout: 120_000 },
  async (t) => {
    const dir = mkdtempSync(path.join(tmpdir(), 'slipway-ca-'));
    t.after(() => rmSync(dir, { recursive: true, force: true }));
    const bundle = path.join(dir, 'extra.pem');
    writeFileSync(bundle, '-----BEGIN CERTIFICATE-----\nRVhUUkE=\n-----END CERTIFICATE-----\n');
    writeFileSync(
      path.join(dir, 'Dockerfile'),
      `FROM ${baseImage}\nRUN grep -c RVhUUkE= "$SSL_CERT_FILE" > /extra; grep -c BEGIN "$PIP_CERT" > /all\n`,
    );
    using bench = new LocalBench();
    const provider = bench.provider({ extraCaBundle: bundle });
    await provider.preflight(never);
    const image = {
      kind: 'dockerfile',
      contextDir: dir,
      contextHash: 'test-certificates',
    } as const;
    const environment = provider.environment(bench.spec({ image, forceBuild: true }));
    try {
      await environment.start({ signal: never });
      const { stdout } = await environment.exec({ command: 'cat /extra /all' }, never);
      const [extra, all] = stdout.trim().split('\n').map(Number);
      assert.equal(extra, 1);
      assert.ok((all ?? 0) > 50);
    } finally {
      await environment.destroy();
    }
  },
);
