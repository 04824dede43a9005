import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, readdir, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { describe, it } from 'node:test';
import {
  endLeftProcesses,
  noteBackend,
  noteGatewayWorkers,
} from '../../src/app/serve/left-processes.ts';
import { isRunning, processOwner } from '../../src/store/file/run-owner.ts';

async function inFolder(body: (dir: string) => Promise<void>): Promise<void> {
  const dir = await mkdtemp(path.join(os.tmpdir(), 'slipway-left-'));
  try {
    await body(dir);
  } finally {
    await rm(dir, { recursive: true, force: true });
  }
}

describe('a process whose server is dead', { timeout: 60_000 }, () => {
  it('is ended by the next server, also one that hears nothing', () =>
    inFolder(async (dir) => {
      const child = spawn('sleep', ['1000'], { stdio: 'ignore' });
      child.kill('SIGSTOP');
      const exited = once(child, 'exit');
      await noteBackend(dir, child.pid!);
      await endLeftProcesses(dir);
      assert.deepEqual(await exited, [null, 'SIGKILL']);
      assert.deepEqual(await readdir(dir), []);
    }));

  it('is ended also where there are several of the gateway', () =>
    inFolder(async (dir) => {
      const children = [1, 2].map(() => spawn('sleep', ['1000'], { stdio: 'ignore' }));
      const exits = children.map((child) => once(child, 'exit'));
      await noteGatewayWorkers(
        dir,
        children.map(({ pid }) => pid!),
      );
      await endLeftProcesses(dir);
      for (const exit of exits) assert.deepEqual(await exit, [null, 'SIGKILL']);
      assert.deepEqual(await readdir(dir), []);
    }));

  it('is not taken for another process that has got its number', () =>
    inFolder(async (dir) => {
      const child = spawn('sleep', ['1000'], { stdio: 'ignore' });
      await noteBackend(dir, child.pid!);
      const other = { bootId: 'of before', pid: child.pid!, processStart: 1, runId: 'backend' };
      await writeFile(path.join(dir, 'backend.json'), JSON.stringify(other));
      await endLeftProcesses(dir);
      assert.equal(child.exitCode ?? child.signalCode, null);
      child.kill('SIGKILL');
    }));

  it('is never a group of processes, nor one that nobody can name', () =>
    inFolder(async (dir) => {
      const child = spawn('sleep', ['1000'], { stdio: 'ignore', detached: true });
      const pid = child.pid!;
      await noteBackend(dir, pid);
      const file = path.join(dir, 'backend.json');
      const own = JSON.parse(await readFile(file, 'utf8')) as object;
      const hostile = [
        { pid: -pid, processStart: null },
        { pid: String(pid) },
        { pid: 99_999_999, processStart: null },
      ];
      for (const each of hostile) {
        await writeFile(file, JSON.stringify({ ...own, ...each }));
        await endLeftProcesses(dir);
      }
      assert.ok(isRunning(processOwner('backend', pid)));
      child.kill('SIGKILL');
    }));

  for (const text of ['', '{"pid":', '[]', 'null'])
    it(`is nobody when the note is ${JSON.stringify(text)}`, () =>
      inFolder(async (dir) => {
        await writeFile(path.join(dir, 'backend.json'), text);
        await endLeftProcesses(dir);
        assert.deepEqual(await readdir(dir), []);
      }));

  it('is nobody where there was none', () => inFolder((dir) => endLeftProcesses(dir)));
});
