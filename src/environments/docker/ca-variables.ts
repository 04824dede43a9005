import { readFile } from 'node:fs/promises';
import { rootCertificates } from 'node:tls';
import { attribute } from '../../core/errors.ts';

/** Where extra CA certificates lie in a sandbox and in a build. */
export const caFile = '/etc/slipway/ca-certificates.pem';

/** The variables by which the usual tools find them. */
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

/** Most of these variables replace a tool's own list, so the file holds the public roots and the extra certificates. */
export async function caBundle(file: string): Promise<string> {
  try {
    return `${rootCertificates.join('\n')}\n${await readFile(file, 'utf8')}`;
  } catch (error) {
    throw attribute(error, 'CONFIG_INVALID', 'config', `extra CA bundle ${file}`);
  }
}
