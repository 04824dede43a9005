import type { EnvironmentSpec } from '../../environment.ts';
import { caVariables } from '../../shared/extra-ca.ts';
import type { CompiledKubernetesOptions } from '../options.ts';
import { annotationKeys, container, podAnnotations, podLabels, podName } from './names.ts';

/** Sleeps for ever and ends at once when it is told to. */
const keepUp = 'trap "exit 0" TERM; while :; do sleep 3600 & wait $!; done';
/** A pod lives at least so long, whatever its labels say: shorter ones would end while they start. */
const leastSeconds = 60;
/** The API takes no more. */
const mostSeconds = 2 ** 31 - 1;

export interface PodRequest {
  readonly spec: EnvironmentSpec;
  readonly reference: string;
  /** See `annotationKeys.mark`. */
  readonly mark: string;
  readonly hasCa: boolean;
  readonly now: Date;
}

/** A pod that keeps one container of the image up until it is removed, or until its labels say that nobody remembers it. */
export function podManifest(request: PodRequest, options: CompiledKubernetesOptions): object {
  const { spec, mark } = request;
  const secondsLeft = (Date.parse(spec.labels.expiresAt) - request.now.getTime()) / 1000;
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name: podName(spec.name),
      labels: { ...options.labels, ...podLabels(spec.name, spec.labels) },
      annotations: {
        ...options.annotations,
        ...podAnnotations(spec.name, spec.labels),
        [annotationKeys.mark]: mark,
      },
    },
    spec: {
      restartPolicy: 'Never',
      activeDeadlineSeconds: Math.min(mostSeconds, Math.max(leastSeconds, Math.ceil(secondsLeft))),
      terminationGracePeriodSeconds: 1,
      automountServiceAccountToken: false,
      enableServiceLinks: false,
      shareProcessNamespace: true,
      ...(options.serviceAccount !== null && { serviceAccountName: options.serviceAccount }),
      ...(options.runtimeClass !== null && { runtimeClassName: options.runtimeClass }),
      ...(options.imagePullSecrets.length > 0 && {
        imagePullSecrets: options.imagePullSecrets.map((name) => ({ name })),
      }),
      ...(Object.keys(options.nodeSelector).length > 0 && { nodeSelector: options.nodeSelector }),
      ...(options.tolerations.length > 0 && { tolerations: options.tolerations }),
      securityContext: {
        seccompProfile: { type: 'RuntimeDefault' },
        ...(options.runAsUser !== null && { runAsUser: options.runAsUser }),
      },
      containers: [
        {
          name: container,
          image: request.reference,
          ...(options.imagePullPolicy !== null && { imagePullPolicy: options.imagePullPolicy }),
          command: ['sh', '-c', literal(keepUp)],
          env: Object.entries({ ...(request.hasCa ? caVariables : {}), ...spec.env }).map(
            ([name, value]) => ({ name, value: literal(value) }),
          ),
          resources: resources(spec, options),
        },
      ],
    },
  };
}

function resources(spec: EnvironmentSpec, options: CompiledKubernetesOptions): object {
  const { cpus, memoryMb } = spec.limits;
  const amounts = (fraction: number): Record<string, string> => ({
    ...(cpus !== null && { cpu: `${Math.ceil(cpus * 1000 * fraction)}m` }),
    ...(memoryMb !== null && { memory: `${Math.ceil(memoryMb * fraction)}Mi` }),
  });
  return { limits: amounts(1), requests: amounts(options.requestFraction) };
}

/** The API replaces `$(NAME)` in arguments and variables; a doubled dollar is a dollar. */
function literal(text: string): string {
  return text.replaceAll('$', '$$$$');
}
