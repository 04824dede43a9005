/** A server that dies: starts a runner whose code holds its interpreter for ever, and says which processes there are. */
import { z } from 'zod';
import { startAsking } from './asking-role.ts';

const runner = startAsking(process.argv[2] ?? '');
await runner.ready;
runner.onPrint = (text) => process.stdout.write(text);
await runner.carryOut({ order: { act: 'holds' }, report: z.unknown() });
