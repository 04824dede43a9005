import assert from 'node:assert/strict';
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import type { EnvironmentLayer } from '../../../../src/environments/environment.ts';
import type { ConformanceCase } from '../adapter.ts';
import { output } from '../looking.ts';

const at = '/opt/suite/layer';

async function layer(folder: string): Promise<EnvironmentLayer> {
  const hostDir = path.join(folder, 'layer');
  await mkdir(path.join(hostDir, 'deep'), { recursive: true });
  await writeFile(path.join(hostDir, 'deep', 'word'), 'of the host');
  return { hostDir, at };
}

export const layerCases: readonly ConformanceCase[] = [
  {
    id: 'layers.visible',
    title: 'a layer is read at its place, and several stand side by side',
    needs: 'layers',
    async run({ start, folder, signal }) {
      const one = await layer(folder);
      const layers = [one, { ...one, at: '/opt/suite/other' }];
      const environment = await start({ layers });
      assert.equal(await output(environment, `cat ${at}/deep/word`, signal), 'of the host');
      const other = await output(environment, 'cat /opt/suite/other/deep/word', signal);
      assert.equal(other, 'of the host');
    },
  },
  {
    id: 'layers.read-only',
    title: 'a layer cannot be changed from inside, by root either, and is whole afterwards',
    needs: 'layers',
    async run({ start, folder, signal }) {
      const one = await layer(folder);
      const environment = await start({ layers: [one] });
      const tries = [
        `echo changed > ${at}/deep/word`,
        `echo new > ${at}/new`,
        `rm ${at}/deep/word`,
        `mount -o remount,rw ${at} && echo new > ${at}/new`,
      ];
      for (const command of tries)
        assert.notEqual((await environment.exec({ command }, signal)).exitCode, 0, command);
      await environment.destroy();
      assert.equal(await readFile(path.join(one.hostDir, 'deep', 'word'), 'utf8'), 'of the host');
      assert.deepEqual(await readdir(one.hostDir), ['deep']);
    },
  },
];
