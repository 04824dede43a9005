import assert from 'node:assert/strict';
import path from 'node:path';
import { describe, it } from 'node:test';
import { never } from '../../src/core/linked-abort.ts';
import {
  resolveEnvironmentDefinition,
  type DefinitionOptions,
} from '../../src/tasks/environment-definition.ts';
import { taskFolder, type FolderFiles } from '../fakes/task-folder.ts';

interface Given extends Partial<DefinitionOptions> {
  readonly files: readonly string[];
}

// Kind of image, its main image or reference, whether the folder is uploaded.
const rows: readonly (readonly [string, Given, readonly [string, string | null, boolean]])[] = [
  ['a Dockerfile', { files: ['Dockerfile'] }, ['dockerfile', null, false]],
  ['an image beside other files', { files: ['a'], dockerImage: 'x' }, ['prebuilt', 'x', true]],
  ['an image and no folder', { files: [], dockerImage: 'x' }, ['prebuilt', 'x', false]],
  [
    'an image beside a Dockerfile',
    { files: ['Dockerfile'], dockerImage: 'x' },
    ['prebuilt', 'x', false],
  ],
  [
    'an image beside a Dockerfile that must be built',
    { files: ['Dockerfile'], dockerImage: 'x', forceBuild: true },
    ['dockerfile', null, false],
  ],
  [
    'an image where nothing can be built',
    { files: ['a'], dockerImage: 'x', forceBuild: true },
    ['prebuilt', 'x', true],
  ],
  ['a compose file', { files: ['docker-compose.yaml'] }, ['compose', null, false]],
  [
    'a compose file and an image',
    { files: ['docker-compose.yaml'], dockerImage: 'x' },
    ['compose', 'x', false],
  ],
  [
    'a compose file and a Dockerfile',
    { files: ['docker-compose.yaml', 'Dockerfile'] },
    ['compose', null, false],
  ],
  [
    'an image beside a folder that git keeps',
    { files: ['.gitkeep'], dockerImage: 'x' },
    ['prebuilt', 'x', false],
  ],
  [
    'a compose file of the run',
    { files: ['a'], dockerImage: 'x', extraComposeFiles: ['/e.yaml'] },
    ['compose', 'x', true],
  ],
  [
    'a compose file of the run alone',
    { files: [], extraComposeFiles: ['/e.yaml'] },
    ['compose', null, false],
  ],
];

async function definitionOf({ files, ...given }: Given) {
  const content: FolderFiles = Object.fromEntries(
    files.map((name) => [`environment/${name}`, name]),
  );
  await using folder = await taskFolder(content);
  const contextDir = path.join(folder.dir, 'environment');
  const defaults = { dockerImage: null, forceBuild: false, extraComposeFiles: [] };
  const options = { contextDir, ...defaults, signal: never, ...given };
  return { contextDir, ...(await resolveEnvironmentDefinition(options)) };
}

describe('an environment is defined by', () => {
  for (const [what, given, [kind, reference, isUploaded]] of rows)
    it(what, async () => {
      const { image, uploadDir, contextDir } = await definitionOf(given);
      assert.equal(image.kind, kind);
      if (image.kind === 'prebuilt') assert.equal(image.reference, reference);
      else assert.match(image.contextHash, /^[0-9a-f]{32}$/);
      if (image.kind === 'compose') assert.equal(image.mainImage, reference);
      assert.equal(uploadDir, isUploaded ? contextDir : null);
    });

  it('its own compose file before those of the run, which win by coming later', async () => {
    const { image, contextDir } = await definitionOf({
      files: ['docker-compose.yaml'],
      extraComposeFiles: ['/one.yaml', '/two.yaml'],
    });
    assert.ok(image.kind === 'compose');
    assert.deepEqual(image.composeFiles, [
      `${contextDir}/docker-compose.yaml`,
      '/one.yaml',
      '/two.yaml',
    ]);
  });

  it('nothing else: a compose file of another spelling does not count', async () => {
    await assert.rejects(definitionOf({ files: ['docker-compose.yml'] }), {
      code: 'TASK_ENVIRONMENT_UNDEFINED',
      field: 'environment.docker_image',
    });
    await assert.rejects(definitionOf({ files: [] }), { code: 'TASK_ENVIRONMENT_UNDEFINED' });
  });
});
