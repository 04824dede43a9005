/** Where the Docker engine should answer, and whether it does. */
import { request } from 'node:http';

const defaultSocket = '/var/run/docker.sock';

/** @returns {{ socketPath: string } | { host: string, port: number } | null} null for addresses we do not speak (ssh, npipe). */
export function dockerAddress() {
  const address = process.env['DOCKER_HOST'] || `unix://${defaultSocket}`;
  if (address.startsWith('unix://')) return { socketPath: address.slice('unix://'.length) };
  if (!/^(tcp|http):\/\//.test(address)) return null;
  const url = new URL(address.replace(/^tcp:/, 'http:'));
  return { host: url.hostname, port: Number(url.port || 2375) };
}

/**
 * @returns {Promise<'answers' | 'absent' | 'forbidden'>} `forbidden`: an engine is there, but this user may not talk to it.
 */
export function askDocker() {
  const address = dockerAddress();
  if (address === null) return Promise.resolve('absent');
  return new Promise((resolve) => {
    const ping = request({ ...address, path: '/_ping', timeout: 3_000 }, (response) => {
      response.resume();
      resolve(response.statusCode === 200 ? 'answers' : 'absent');
    });
    ping.on('timeout', () => ping.destroy());
    ping.on('error', (error) => {
      const code = /** @type {NodeJS.ErrnoException} */ (error).code;
      resolve(code === 'EACCES' || code === 'EPERM' ? 'forbidden' : 'absent');
    });
    ping.end();
  });
}

export async function isDockerAnswering() {
  return (await askDocker()) === 'answers';
}
