import { readFileSync } from 'node:fs';
import path from 'node:path';
import { attribute, RolloutError } from '../../../core/errors.ts';

/** Where an Engine API is served. */
export type EngineEndpoint =
  | { readonly kind: 'unix'; readonly socketPath: string }
  | {
      readonly kind: 'tcp';
      readonly host: string;
      readonly port: number;
      readonly tls: { readonly ca: Buffer; readonly cert: Buffer; readonly key: Buffer } | null;
    };

/** Reads an address as `DOCKER_HOST` has it. CONFIG_INVALID for schemes that need another program (`ssh`, `npipe`). */
export function parseEngineEndpoint(host: string, certPath: string | null): EngineEndpoint {
  const unix = /^unix:\/\/(\/.+)$/.exec(host)?.[1];
  if (unix !== undefined) return { kind: 'unix', socketPath: unix };
  const tcp = /^(?:tcp|https?):\/\/(\[[^\]]+\]|[^:/]+)(?::(\d+))?\/?$/.exec(host);
  if (tcp?.[1] === undefined)
    throw new RolloutError('CONFIG_INVALID', `"${host}" is not an address of a Docker engine`, {
      phase: 'config',
      field: 'DOCKER_HOST',
      remedy:
        'Use unix:///path or tcp://host:port; for ssh forward the socket with "ssh -L" first.',
    });
  const tls = certPath === null ? null : readCertificates(certPath);
  const port = Number(tcp[2] ?? (tls === null ? 2375 : 2376));
  return { kind: 'tcp', host: tcp[1].replace(/^\[|\]$/g, ''), port, tls };
}

function readCertificates(folder: string): { ca: Buffer; cert: Buffer; key: Buffer } {
  try {
    const [ca, cert, key] = ['ca.pem', 'cert.pem', 'key.pem'].map((name) =>
      readFileSync(path.join(folder, name)),
    ) as [Buffer, Buffer, Buffer];
    return { ca, cert, key };
  } catch (error) {
    throw attribute(error, 'CONFIG_INVALID', 'config', 'certificates of the Docker engine');
  }
}
