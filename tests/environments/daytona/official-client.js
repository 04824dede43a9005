/** Drives a Daytona service with the official client, found in the folder that is named, and prints as JSON what the client made of the answers. */
import { createRequire } from 'node:module';
import { join } from 'node:path';

const [peerDir, apiUrl, apiKey, contextDir] = process.argv.slice(2);
const { Daytona, Image } = createRequire(join(peerDir, 'package.json'))('@daytonaio/sdk');
const client = (key) =>
  new Daytona({ apiUrl, apiKey: key, target: 'fake', useDeprecatedPolling: true });
const seen = {};

const daytona = client(apiKey);
const sandbox = await daytona.create(
  {
    image: 'debian:bookworm-slim',
    name: 'by-client',
    labels: { team: 'x' },
    networkBlockAll: true,
    envVars: { A: 'b' },
  },
  { timeout: 60 },
);
seen.state = sandbox.state;
seen.isSame = (await daytona.get('by-client')).id === sandbox.id;
seen.listed = [];
for await (const each of daytona.list({ labels: { team: 'x' } })) seen.listed.push(each.name);

const { process: programs, fs } = sandbox;
await programs.createSession('s');
const waited = await programs.executeSessionCommand('s', {
  command: 'echo out; echo err >&2; cd /tmp; (exit 3)',
});
seen.waited = [waited.exitCode, waited.stdout, waited.stderr];
const started = await programs.executeSessionCommand('s', {
  command: 'read line; echo "got $line"; pwd; echo no >&2',
  runAsync: true,
});
seen.streams = ['', ''];
const followed = programs.getSessionCommandLogs(
  's',
  started.cmdId,
  (text) => (seen.streams[0] += text),
  (text) => (seen.streams[1] += text),
);
await programs.sendSessionCommandInput('s', started.cmdId, 'hello');
await followed;
seen.exitCode = (await programs.getSessionCommand('s', started.cmdId)).exitCode;
await programs.deleteSession('s');
const executed = await programs.executeCommand('printf "$A"; exit 4');
seen.executed = [executed.exitCode, executed.result];

await fs.uploadFile(Buffer.from('content'), '/tmp/a/file');
seen.file = (await fs.downloadFile('/tmp/a/file')).toString();
await sandbox.updateNetworkSettings({ networkBlockAll: false });
seen.isBlocked = sandbox.networkBlockAll;

const image = Image.fromDockerfile(join(contextDir, 'Dockerfile'));
const snapshot = await daytona.snapshot.create({ name: 'of-client', image });
seen.snapshot = snapshot.state;
const built = await daytona.create({ snapshot: 'of-client' }, { timeout: 60 });
seen.built = (await built.process.executeCommand('cat /copied')).result;
await built.delete();
await sandbox.delete(60, true);
const nameOf = (promise) =>
  promise.then(
    () => 'none',
    (error) => error.name,
  );
seen.errors = [
  await nameOf(daytona.get('by-client')),
  await nameOf(client('wrong').get('by-client')),
  await nameOf(daytona.create({ snapshot: 'absent' })),
];
console.log(JSON.stringify(seen));
process.exit(0); // the client holds its connections open
