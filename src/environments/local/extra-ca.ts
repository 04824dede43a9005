/** Extra CA certificates in a sandbox or a build: one file at one place, named by the variables that the usual tools read. */
const caFile = '/etc/slipway/ca-certificates.pem';

const names = [
  'SSL_CERT_FILE',
  'NODE_EXTRA_CA_CERTS',
  'PIP_CERT',
  'REQUESTS_CA_BUNDLE',
  'CURL_CA_BUNDLE',
  'GIT_SSL_CAINFO',
] as const;

export const caVariables = {
  file: caFile,
  assignments: names.map((name) => `${name}=${caFile}`),
  /** Whether an image's variable was put there by a build of ours: it belongs to the machine, not to the image. */
  isOurs: (assignment: string): boolean => names.some((name) => assignment === `${name}=${caFile}`),
};
