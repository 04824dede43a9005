/** Extra CA certificates in a sandbox or a build: one file at one place, named by the variables that the usual tools read. */
import { readFile } from 'node:fs/promises';
import { rootCertificates } from 'node:tls';
import { attribute } from '../../core/errors.ts';

export const caFile = '/etc/slipway/ca-certificates.pem';

export const caVariables: Readonly<Record<string, string>> = Object.fromEntries(
  [
    'SSL_CERT_FILE',
    'NODE_EXTRA_CA_CERTS',
    'PIP_CERT',
    'REQUESTS_CA_BUNDLE',
    'CURL_CA_BUNDLE',
    'GIT_SSL_CAINFO',
  ].map((name) => [name, caFile]),
);

/** The variables as `NAME=value`. */
export const caAssignments: readonly string[] = Object.entries(caVariables).map(
  ([name, value]) => `${name}=${value}`,
);

/**
 * What the file holds, from the host's PEM file: most of the variables replace a tool's own list, so the public roots come with the
 * extra certificates. CONFIG_INVALID when it cannot be read.
 */
export async function caBundle(file: string): Promise<string> {
  try {
    return `${rootCertificates.join('\n')}\n${await readFile(file, 'utf8')}`;
  } catch (error) {
    throw attribute(error, 'CONFIG_INVALID', 'config', `extra CA bundle ${file}`);
  }
}
