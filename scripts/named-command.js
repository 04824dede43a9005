/** Commands that are files of one folder. A file that exports nothing is a command; one that does is shared by the commands. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { runOnSlipwayNode } from './setup/child.js';
import { allParts, setUp } from './setup/main.js';
import { repositoryDir } from './setup/repository.js';

/**
 * @param {string} script The npm script's name.
 * @param {string} folder Relative to the repository.
 * @param {readonly string[]} argv Name of the command, then its own arguments.
 * @returns {Promise<number>} Exit code.
 */
export async function runNamedCommand(script, folder, argv) {
  const commands = commandsOf(folder);
  const [name, ...rest] = argv;
  if (name === undefined) {
    console.log(`npm run ${script} -- NAME`);
    for (const command of commands) console.log(`  ${command.name.padEnd(20)} ${command.about}`);
    return commands.length > 0 ? 0 : 1;
  }
  if (!commands.some((command) => command.name === name)) {
    const known = commands.map((command) => command.name).join(', ');
    console.error(`There is no ${script} command "${name}". Known: ${known || 'none'}.`);
    return 2;
  }
  if ((await setUp(allParts)) === 'failed') return 1;
  console.log('');
  return runOnSlipwayNode(join(folder, `${name}.ts`), rest);
}

/** @param {string} folder */
function commandsOf(folder) {
  const dir = join(repositoryDir, folder);
  if (!existsSync(dir)) return [];
  return readdirSync(dir)
    .filter((file) => file.endsWith('.ts') && !file.endsWith('.test.ts'))
    .sort()
    .map((file) => ({ file, source: readFileSync(join(dir, file), 'utf8') }))
    .filter(({ source }) => !/^export /m.test(source))
    .map(({ file, source }) => ({ name: file.slice(0, -'.ts'.length), about: about(source) }));
}

/** The first sentence of the head comment. @param {string} source */
function about(source) {
  const comment = /^(?:#!.*\n)?\/\*\*([\s\S]*?)\*\//.exec(source)?.[1] ?? '';
  const words = comment
    .replace(/^\s*\* ?/gm, '')
    .replace(/\s+/g, ' ')
    .trim();
  return words.split(/(?<=\.)\s/)[0] ?? '';
}
