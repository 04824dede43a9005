import assert from 'node:assert/strict';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, test } from 'node:test';
import { never } from '../../../src/core/linked-abort.ts';
import { HostListener, hostAddresses } from '../../conformance/environment/host-listener.ts';
import { shellProbes } from '../../conformance/environment/probes.ts';
import { baseImage, LocalBench, whyNoRunc } from '../../environments/local/local-bench.ts';
import { FastClock } from '../fast-clock.ts';
import { ManualClock } from '../manual-clock.ts';
import { SandboxHost } from './sandbox-host.ts';
import { ServiceFaults } from './service-faults.ts';

const image = { kind: 'prebuilt', reference: baseImage } as const;

describe('a host of light sandboxes', () => {
  test('programs succeed at once and cost nothing', async () => {
    await using host = new SandboxHost({ sandboxes: {} });
    const sandbox = host.create({ image });
    assert.equal(sandbox.state, 'creating');
    await sandbox.ready;
    assert.deepEqual(await sandbox.output(['sleep', '100']), { exitCode: 0, stdout: '' });
    await sandbox.remove();
    assert.deepEqual(host.list(), []);
  });

  test('creations over the rate are refused with the time after which one is taken', () => {
    const clock = new ManualClock();
    const host = new SandboxHost({ sandboxes: {}, clock, limits: { createsPerSecond: 2 } });
    host.create({ image });
    clock.advance(400);
    host.create({ image });
    assert.throws(() => host.create({ image }), { by: 'rate', retryAfterMs: 600 });
    clock.advance(600);
    host.create({ image });
    assert.deepEqual(host.meter.refused, { rate: 1, quota: 0 });
    assert.equal(host.meter.peakPerSecond, 2);
  });

  test('more live sandboxes than the quota are refused until one is removed', async () => {
    await using host = new SandboxHost({ sandboxes: {}, limits: { liveSandboxes: 1 } });
    const first = host.create({ image });
    assert.throws(() => host.create({ image }), { by: 'quota', retryAfterMs: null });
    await first.remove();
    host.create({ image });
    assert.equal(host.meter.peakLive, 1);
  });

  test('a creation takes its time on the clock of the host', async () => {
    const clock = new FastClock(100);
    await using host = new SandboxHost({ sandboxes: {}, clock, limits: { createMs: 2000 } });
    const beganMs = clock.monotonicMs();
    const beganAt = performance.now();
    await host.create({ image }).ready;
    assert.ok(clock.monotonicMs() - beganMs >= 1900);
    assert.ok(performance.now() - beganAt < 1900);
  });

  test('faults strike by their share, the same for each seed, and where they are planted', async () => {
    const draw = (): string => {
      const faults = new ServiceFaults({ 'failed-create': 0.25 }, 7);
      return Array.from({ length: 400 }, () => Number(faults.strikes('failed-create'))).join('');
    };
    const struck = draw().replaceAll('0', '').length;
    assert.ok(struck > 70 && struck < 130, `${struck} of 400`);
    assert.equal(draw(), draw());

    const faults = new ServiceFaults();
    await using host = new SandboxHost({ sandboxes: {}, faults });
    faults.plant('failed-create');
    const failed = host.create({ image });
    await assert.rejects(failed.ready, /could not make/);
    assert.equal(failed.state, 'failed');
    await host.create({ image }).ready;
    assert.equal(faults.count('failed-create'), 1);
  });
});

const skip = whyNoRunc() ?? false;

describe('a host of real sandboxes', { skip }, () => {
  test('programs, files, a packet filter and an end, as in a provider', async () => {
    using bench = new LocalBench();
    const provider = bench.provider({ runtime: 'runc' });
    await provider.preflight(never);
    const folder = await mkdtemp(path.join(tmpdir(), 'sandbox-host-'));
    const listener = await HostListener.open('outside', '0.0.0.0');
    try {
      await using host = new SandboxHost({ sandboxes: provider });
      const sandbox = host.create({ image, env: { OF_SANDBOX: 'yes' } });
      await sandbox.ready;

      const heard: string[] = [];
      const program = await sandbox.run({
        argv: [
          'sh',
          '-c',
          'read line; echo "got $line $1 $OF_SANDBOX $OWN"; echo bad >&2; exit 3',
          'sh',
          `it's`,
        ],
        env: { OWN: 'own' },
        onOutput: (stream, bytes) => heard.push(`${stream}: ${Buffer.from(bytes).toString()}`),
      });
      await program.write('word\n');
      assert.equal(await program.exited, 3);
      assert.deepEqual(heard.sort(), ['stderr: bad\n', "stdout: got word it's yes own\n"]);

      await mkdir(path.join(folder, 'up'));
      await writeFile(path.join(folder, 'up', 'file'), 'content');
      await sandbox.files.uploadDir(path.join(folder, 'up'), '/brought', never);
      await sandbox.files.downloadFile('/brought/file', path.join(folder, 'back'), never);
      assert.equal(await readFile(path.join(folder, 'back'), 'utf8'), 'content');

      const [address] = hostAddresses();
      const fetch = async (): Promise<string> =>
        (await sandbox.output(['bash', '-c', shellProbes.fetchDirect(address!, listener.port)]))
          .stdout;
      assert.match(await fetch(), /outside/);
      await sandbox.setEgress({ cidrs: [`${address}/32`] });
      assert.match(await fetch(), /outside/);
      await sandbox.setEgress('none');
      assert.equal(await fetch(), '');

      await sandbox.stop();
      assert.equal(sandbox.state, 'stopped');
      await sandbox.remove();
      assert.deepEqual(bench.leftovers(), []);
    } finally {
      await listener[Symbol.asyncDispose]();
      await rm(folder, { recursive: true, force: true });
    }
  });
});
