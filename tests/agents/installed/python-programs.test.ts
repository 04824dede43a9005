/** Programs from PyPI: which Python of the machine is taken, what pip is asked, and why it may fail. That what comes of it runs is shown by whole runs. */
import assert from 'node:assert/strict';
import { chmod, mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, test } from 'node:test';
import { ProgramFolder } from '../../../src/agents/installed/program-folder.ts';
import type { ProgramRunner } from '../../../src/agents/installed/program-runner.ts';
import { systemClock } from '../../../src/core/clock.ts';
import { never } from '../../../src/core/linked-abort.ts';
import { FileLocks } from '../../../src/store/file/file-lock.ts';

const program = {
  name: 'tool',
  packages: ['tool==1.2.3'],
  python: { versions: ['3.13', '3.12'], lock: ['tool==1.2.3', 'other==4.5'] },
};

/** What of a machine the installer sees: its Pythons by command, and what its other commands say. */
interface Machine {
  readonly pythons: Readonly<Record<string, string>>;
  readonly libraries?: readonly string[];
  readonly pip?: { readonly exitCode: number; readonly stderr: string };
  readonly variables?: Readonly<Record<string, string>>;
  readonly trialExit?: number;
}

describe('programs of agents from PyPI', () => {
  let root = '';
  let calls: { readonly argv: readonly string[]; readonly variables: object }[] = [];
  beforeEach(async () => {
    root = await mkdtemp(path.join(os.tmpdir(), 'slipway-pypi-'));
    calls = [];
    const library = path.join(root, 'usr/lib/python3.12');
    for (const folder of ['json', 'test', 'site-packages', 'lib-dynload'])
      await mkdir(path.join(library, folder), { recursive: true });
    for (const file of ['os.py', 'test/x.py', 'site-packages/y.py', 'lib-dynload/_ssl.so'])
      await writeFile(path.join(library, file), '');
    for (const file of ['python3.12', 'libssl.so.3', 'ld-linux-x86-64.so.2']) {
      await writeFile(path.join(root, file), file);
      await chmod(path.join(root, file), 0o755);
    }
  });
  afterEach(() => rm(root, { recursive: true, force: true }));

  const allLibraries = ['libssl.so.3', 'ld-linux-x86-64.so.2'];

  const runnerOf =
    ({ pythons, libraries = allLibraries, pip, trialExit = 0 }: Machine): ProgramRunner =>
    async (argv, { variables, cwd }) => {
      calls.push({ argv, variables });
      const [command, flag] = argv;
      const said = (stdout: string) => ({ exitCode: 0, stdout, stderr: '' });
      if (command === 'ldd')
        return said(
          libraries.map((name) => `\tx => ${path.join(root, name)} (0x00007f)\n`).join(''),
        );
      if (flag === '-S' && command.startsWith(cwd))
        return { exitCode: trialExit, stdout: '', stderr: '--argv0 is not known' };
      const version = pythons[command];
      if (version === undefined) throw new Error(`spawn ${command} ENOENT`);
      if (flag === '-c')
        return said(
          JSON.stringify({
            ...{ version, executable: path.join(root, 'python3.12'), libFolder: 'lib' },
            stdlib: path.join(root, 'usr/lib/python3.12'),
          }),
        );
      return { stdout: '', ...(pip ?? { exitCode: 0, stderr: '' }) };
    };

  const install = async (machine: Machine, wanted: typeof program | object = program) => {
    const folder = new ProgramFolder({
      ...{ dir: path.join(root, 'agents'), run: runnerOf(machine), extraCaBundle: '/own.pem' },
      ...{ locks: new FileLocks(systemClock), variables: { HOME: root, ...machine.variables } },
    });
    return await folder.folderOf({ ...program, ...wanted }, never);
  };
  const pipCall = () => calls.find(({ argv }) => argv[2] === 'pip');

  test('take the first Python that is fit: the one that is named, those in PATH, those of pyenv', async () => {
    const taken = async (machine: Machine): Promise<string | undefined> => {
      await rm(path.join(root, 'agents'), { recursive: true, force: true });
      calls = [];
      await install(machine);
      return pipCall()?.argv[0];
    };
    const shim = path.join(root, '.pyenv/versions/3.12.9/bin/python3');
    await mkdir(path.dirname(shim), { recursive: true });
    const pythons = { '/my/python': '3.12', 'python3.12': '3.12', python3: '3.13', [shim]: '3.12' };
    assert.equal(
      await taken({ pythons, variables: { SLIPWAY_PYTHON: '/my/python' } }),
      '/my/python',
    );
    assert.equal(await taken({ pythons }), 'python3.12');
    assert.equal(await taken({ pythons: { python3: '3.13', [shim]: '3.12' } }), 'python3');
    assert.equal(await taken({ pythons: { python3: '3.9', [shim]: '3.12' } }), shim);
  });

  test('are installed of wheels alone, as the lock says, and as pip chooses where there is none', async () => {
    await install({ pythons: { python3: '3.12' } });
    const { argv = [], variables } = pipCall() ?? {};
    assert.deepEqual(argv.slice(0, 4), ['python3', '-m', 'pip', 'install']);
    assert.ok(argv.join(' ').includes('--only-binary :all: --target packages'));
    assert.deepEqual(argv.slice(-3), ['--no-deps', 'tool==1.2.3', 'other==4.5']);
    assert.equal((variables as Record<string, string>)['PIP_CERT'], '/own.pem');
    calls = [];
    const python = { versions: ['3.12'], lock: null };
    await install({ pythons: { python3: '3.12' } }, { packages: ['tool==9'], python });
    const free = pipCall()?.argv ?? [];
    assert.equal(free.at(-1), 'tool==9');
    assert.ok(!free.includes('--no-deps'));
  });

  test('bring the interpreter, its library without its packages, and all that it is linked to', async () => {
    const dir = await install({ pythons: { python3: '3.12' } });
    assert.deepEqual((await readdir(path.join(dir, 'libexec'))).sort(), [
      ...['ld-linux-x86-64.so.2', 'libssl.so.3', 'python'],
    ]);
    const library = await readdir(path.join(dir, 'lib/python3.12'));
    assert.deepEqual(library.sort(), ['json', 'lib-dynload', 'os.py', 'sitecustomize.py']);
    const launcher = path.join(dir, 'bin/python3');
    assert.match(await readFile(launcher, 'utf8'), /libexec\/ld-linux-x86-64\.so\.2/);
    assert.equal((await stat(launcher)).mode & 0o777, 0o755);
    const linked = calls.find(({ argv }) => argv[0] === 'ldd')?.argv ?? [];
    assert.ok(linked.some((file) => file.endsWith('lib-dynload/_ssl.so')));
  });

  const failures: readonly (readonly [string, Machine, RegExp, RegExp])[] = [
    [
      'a machine without a fit Python',
      { pythons: { python3: '3.9' } },
      /tool==1\.2\.3.*no Python 3\.13 or 3\.12 with pip is found/,
      /SLIPWAY_PYTHON/,
    ],
    [
      'a registry that is out of reach',
      { pythons: { python3: '3.12' }, pip: { exitCode: 1, stderr: 'ERROR: No matching\n' } },
      /pip of python3 ended with 1/,
      /PyPI within reach/,
    ],
    [
      'another C library',
      { pythons: { python3: '3.12' }, libraries: ['libssl.so.3'] },
      /does not run from a copy/,
      /GNU C library/,
    ],
    [
      'a loader that is too old',
      { pythons: { python3: '3.12' }, trialExit: 127 },
      /does not run from a copy/,
      /2\.33 or newer/,
    ],
  ];
  for (const [name, machine, message, remedy] of failures)
    test(`on ${name} leave nothing, and say what to do`, async () => {
      await assert.rejects(install(machine), { code: 'AGENT_SETUP_FAILED', message, remedy });
      const left = (await readdir(path.join(root, 'agents'))).filter(
        (file) => !file.endsWith('.lock'),
      );
      assert.deepEqual(left, []);
    });
});
