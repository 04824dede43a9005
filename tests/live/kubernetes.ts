/** The suite of environments on a real cluster: KUBECONFIG and SLIPWAY_LIVE_NAMESPACE; SLIPWAY_LIVE_IMAGE for another image with bash, util-linux and perl. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { never } from '../../src/core/linked-abort.ts';
import { KubernetesProvider } from '../../src/environments/kubernetes/kubernetes-provider.ts';
import { kubernetesDeclines } from '../conformance/kubernetes-declines.ts';
import { environmentSuite } from '../conformance/environment-suite.ts';
import { liveCases, needed } from './live-row.ts';

const [kubeconfig = '', namespace = ''] = needed('kubernetes', [
  { variable: 'KUBECONFIG', what: 'the kubeconfig file, absolute; its current context is used' },
  {
    variable: 'SLIPWAY_LIVE_NAMESPACE',
    what: 'a namespace for sandboxes, with the Role of docs/kubernetes.md',
  },
]);
const provider = (): KubernetesProvider =>
  new KubernetesProvider({ kubeconfig, namespace }, { hostVariables: process.env });
const run = promisify(execFile);

environmentSuite({
  kind: 'kubernetes',
  provider,
  image: process.env['SLIPWAY_LIVE_IMAGE'] ?? 'docker.io/library/debian:bookworm',
  declines: kubernetesDeclines,
  only: liveCases,
  leftovers: async (prefix) => {
    const found = await provider().list(never);
    return found.map(({ name }) => name).filter((name) => name.startsWith(prefix));
  },
  // They run on nodes: the pods are asked.
  processesWith: async (marker) => {
    const flags = ['--kubeconfig', kubeconfig, '--namespace', namespace];
    const pods = await run('kubectl', [...flags, 'get', 'pods', '-o', 'name']);
    const look = `for f in /proc/[0-9]*/cmdline; do tr '\\0' ' ' <$f; echo; done 2>/dev/null`;
    const lines = await Promise.all(
      pods.stdout
        .split('\n')
        .filter((pod) => pod !== '')
        .map(async (pod) => {
          const { stdout } = await run('kubectl', [
            ...flags,
            'exec',
            pod,
            '--',
            'sh',
            '-c',
            look,
          ]).catch(
            () => ({ stdout: '' }), // on its way up or down
          );
          return stdout.split('\n').filter((line) => line.includes(marker));
        }),
    );
    return lines.flat();
  },
});
