import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  ControlClient,
  ControlLost,
} from '../../../../src/agents/terminus-2/terminal/control-client.ts';
import { never } from '../../../../src/core/linked-abort.ts';
import type { InteractiveProcess } from '../../../../src/environments/environment.ts';

const noHooks = { onOutput: () => undefined, onNotice: () => undefined };

/** A program that answers the attaching, and then what it is told to. */
async function attached() {
  const exit = Promise.withResolvers<number | null>();
  let kills = 0;
  let write: (text: string) => void = () => undefined;
  const program: InteractiveProcess = {
    write: () => Promise.resolve(),
    endInput: () => undefined,
    exited: exit.promise,
    kill: () => {
      kills += 1;
      exit.resolve(null);
      return Promise.resolve();
    },
  };
  const client = await ControlClient.open(
    {
      openProcess: ({ onOutput }) => {
        write = (text) => onOutput('stdout', Buffer.from(text));
        write('%begin 1 1 0\n%end 1 1 0\n');
        return Promise.resolve(program);
      },
    },
    noHooks,
    never,
  );
  return { client, write: (text: string): void => write(text), exit, kills: () => kills };
}

test('a program that breaks the protocol is killed at once: it may write for ever', async () => {
  const { client, write, kills } = await attached();
  const asked = client.run(['list-windows'], never);
  write('%end 7 7 1\n');
  await assert.rejects(asked, (error) => error instanceof ControlLost && error.isSent);
  assert.deepEqual([client.isOpen, kills()], [false, 1]);
  await client.close();
});

test('a reply that nobody asked for breaks the protocol', async () => {
  const { client, write, kills } = await attached();
  write('%begin 2 2 1\n%end 2 2 1\n');
  assert.deepEqual([client.isOpen, kills()], [false, 1]);
  await client.close();
});

test('a client whose program ends by itself costs no kill', async () => {
  const { client, exit, kills } = await attached();
  const closing = client.close();
  exit.resolve(0);
  await closing;
  assert.equal(kills(), 0);
  await assert.rejects(client.run(['list-windows'], never), ControlLost);
});
