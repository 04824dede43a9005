/** `npm run test:live -- PROVIDER`: runs `tests/live/PROVIDER.ts`, the suite of environments against the real service. Without a name: the list, and what each needs. */
import { runNamedCommand } from './named-command.js';

process.exitCode = await runNamedCommand('test:live', 'tests/live', process.argv.slice(2));
