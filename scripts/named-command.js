/**
 * Commands that are files of one folder. A file is a command when its head comment says how it is run
 * (`npm run bench -- NAME`); what else lies in the folder is shared by the commands.
 */
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
  const commands = commandsOf(script, folder);
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

/** @param {string} script @param {string} folder */
function commandsOf(script, folder) {
  const dir = join(repositoryDir, folder);
  if (!existsSync(dir)) return [];
  return readdirSync(dir)
    .filter((file) => file.endsWith('.ts') && !file.endsWith('.test.ts'))
    .sort()
    .map((file) => ({ name: file.slice(0, -'.ts'.length), head: headComment(join(dir, file)) }))
    .filter(({ name, head }) => head.includes(`npm run ${script} -- ${name}`))
    .map(({ name, head }) => ({ name, about: summary(script, name, head) }));
}

/** @param {string} file */
function headComment(file) {
  const comment = /^(?:#!.*\n)?\/\*\*([\s\S]*?)\*\//.exec(readFileSync(file, 'utf8'))?.[1] ?? '';
  return comment.replace(/^\s*\* ?/gm, '').replace(/\s+/g, ' ');
}

/** The head comment's first sentence, without the command itself. @param {string} script @param {string} name @param {string} head */
function summary(script, name, head) {
  const words = head.replace(`\`npm run ${script} -- ${name}\``, '').replace(/^[\s:.,–-]+/, '');
  return words.split(/(?<=\.)\s/)[0] ?? '';
}
