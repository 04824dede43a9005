import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import * as tar from 'tar-stream';
import { packContext } from '../../../../src/environments/docker/images/build-context.ts';

async function packed(
  folder: string,
  overlay: Readonly<Record<string, string>>,
): Promise<Record<string, string>> {
  const found: Record<string, string> = {};
  const extract = tar.extract();
  packContext(folder, { dockerfile: 'Dockerfile', overlay }).pipe(extract);
  for await (const entry of extract) {
    let text = '';
    for await (const chunk of entry as AsyncIterable<Buffer>) text += chunk.toString();
    const { name, type, linkname, uid, mode } = entry.header;
    assert.equal(uid, 0);
    found[name] = type === 'symlink' ? `-> ${linkname}` : `${(mode & 0o777).toString(8)} ${text}`;
  }
  return found;
}

test('a context is sent without what .dockerignore leaves out, but always with the Dockerfile', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'slipway-context-'));
  try {
    await mkdir(join(folder, 'out/deep'), { recursive: true });
    await writeFile(join(folder, '.dockerignore'), 'out\n!out/deep/kept\nDockerfile\n*.log\n');
    await writeFile(join(folder, 'Dockerfile'), 'FROM x');
    await writeFile(join(folder, 'run.sh'), 'go', { mode: 0o755 });
    await writeFile(join(folder, 'a.log'), 'noise');
    await writeFile(join(folder, 'out/gone'), 'x');
    await writeFile(join(folder, 'out/deep/kept'), '');
    await symlink('run.sh', join(folder, 'link'));
    const found = await packed(folder, { 'run.sh': 'replaced' });
    assert.deepEqual(found, {
      '.dockerignore': '644 out\n!out/deep/kept\nDockerfile\n*.log\n',
      Dockerfile: '644 FROM x',
      link: '-> run.sh',
      'out/deep/kept': '644 ',
      'run.sh': '644 replaced',
    });
  } finally {
    await rm(folder, { recursive: true });
  }
});
