/** `npm run prove -- NAME`: runs `tests/prove/NAME.ts`, a demonstration at full size with its control. Without a name: the list. */
import { runNamedCommand } from './named-command.js';

process.exitCode = await runNamedCommand('prove', 'tests/prove', process.argv.slice(2));
