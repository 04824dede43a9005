/** The process of a backend that dies, or gets stuck, of what a test asks it to execute; or that says something to nobody. */
import type { ToBackend } from '../../src/app/serve/backend-messages.ts';
import '../../src/app/serve/backend-process.ts';

process.on('message', (message: ToBackend) => {
  if (message.kind === 'execute' && message.request.label === 'die') throw new Error('planted');
  if (message.kind === 'execute' && message.request.label === 'exit') process.exit(0);
  if (message.kind === 'execute' && message.request.label === 'spin') for (;;);
  if (message.kind === 'execute' && message.request.label === 'print') console.error('said');
});
