/** `npm run bench -- NAME`: runs `bench/NAME.ts`, which prints goals and what was measured. Without a name: the list. */
import { runNamedCommand } from './named-command.js';

process.exitCode = await runNamedCommand('bench', 'bench', process.argv.slice(2));
