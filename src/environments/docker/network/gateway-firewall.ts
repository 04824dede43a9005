/**
 * On an internal network the sandbox reaches the host's gateway address, and with it every service that listens on all
 * addresses. Where we are root, packet filter rules on the network's interface leave only our own ports. The rules carry the
 * interface's name, which follows from the sandbox's name, so that a later run finds and removes them.
 */
import { spawn } from 'node:child_process';

export interface OpenPorts {
  readonly gateway: string;
  readonly ports: readonly number[];
}

/** Closes the host to an interface but for the named ports. False when the host's packet filter cannot be used by this process. */
export async function closeHostTo(bridge: string, open: OpenPorts): Promise<boolean> {
  if (process.getuid?.() !== 0) return false;
  const ports = [...new Set(open.ports)];
  const accept = ports.map(
    (port) => `-I INPUT 1 -i ${bridge} -d ${open.gateway} -p tcp --dport ${port} -j ACCEPT\n`,
  );
  const rules = `*filter\n-I INPUT 1 -i ${bridge} -j DROP\n${accept.join('')}COMMIT\n`;
  const closed = await run('iptables-restore', ['--noflush', '-w', '5'], rules);
  if (!closed.isOk) return false;
  // Link-local IPv6 reaches the host without any address of ours; a host without IPv6 has nothing to close.
  await run(
    'ip6tables-restore',
    ['--noflush', '-w', '5'],
    `*filter\n-I INPUT 1 -i ${bridge} -j DROP\nCOMMIT\n`,
  );
  return true;
}

/** Removes all rules on an interface. Idempotent; true when none is left, or none could ever have been made. */
export async function reopenHost(bridge: string): Promise<boolean> {
  if (process.getuid?.() !== 0) return true;
  const results = await Promise.all(
    ['iptables', 'ip6tables'].map(async (command) => {
      const rules = await rulesOn(command, bridge);
      if (rules.length === 0) return true;
      const deletions = rules.map((rule) => rule.replace(/^-A/, '-D')).join('\n');
      await run(`${command}-restore`, ['--noflush', '-w', '5'], `*filter\n${deletions}\nCOMMIT\n`);
      return (await rulesOn(command, bridge)).length === 0;
    }),
  );
  return results.every(Boolean);
}

async function rulesOn(command: string, bridge: string): Promise<readonly string[]> {
  const { output } = await run(command, ['-w', '5', '-S', 'INPUT'], '');
  return output.split('\n').filter((line) => line.includes(` -i ${bridge} `));
}

function run(
  command: string,
  args: readonly string[],
  input: string,
): Promise<{ readonly isOk: boolean; readonly output: string }> {
  return new Promise((resolve) => {
    const child = spawn(command, args, { stdio: ['pipe', 'pipe', 'ignore'], timeout: 10_000 });
    let output = '';
    child.stdout.on('data', (chunk: Buffer) => (output += chunk.toString()));
    child.stdin.on('error', () => undefined);
    child.once('error', () => resolve({ isOk: false, output: '' })); // not installed
    child.once('close', (code) => resolve({ isOk: code === 0, output }));
    child.stdin.end(input);
  });
}
