/** Which paths a trial keeps, and where each lands below the `artifacts/` folder of its host side. */
import type { Artifact, TaskEnvironment } from './task.ts';

/** The folder every task may publish into; always collected from the sandbox itself. */
export function publishDir(os: TaskEnvironment['os']): string {
  return os === 'windows' ? 'C:/logs/artifacts' : '/logs/artifacts';
}

/**
 * The artifacts of one collection: the publish folder unless the sandbox's own entries declare it (for example with `exclude`),
 * then the given ones in order. At collection the first claimant of a place wins.
 */
export function withPublishDir(
  artifacts: readonly Artifact[],
  os: TaskEnvironment['os'],
): readonly Artifact[] {
  const source = publishDir(os);
  const isDeclared = artifacts.some(
    (artifact) => artifact.service === null && trimEnd(artifact.source) === source,
  );
  return isDeclared
    ? artifacts
    : [{ source, destination: null, exclude: [], service: null }, ...artifacts];
}

/**
 * Path below `artifacts/`, forward slashes, no leading slash: the destination, else the source without its root
 * (`/logs/artifacts` → `logs/artifacts`, `C:\out` → `C:/out`). The service plays no part. A relative source stays relative.
 */
export function artifactDestination(artifact: Pick<Artifact, 'source' | 'destination'>): string {
  const place = artifact.destination ?? artifact.source.replaceAll('\\', '/');
  return components(place).join('/');
}

function components(place: string): readonly string[] {
  return place.split('/').filter((part) => part !== '' && part !== '.');
}

function trimEnd(source: string): string {
  return source.replaceAll('\\', '/').replace(/(?<=.)\/+$/, '');
}

/** Whether one path equals the other or holds it. */
export function isOverlap(left: string, right: string): boolean {
  const [a, b] = [components(left), components(right)];
  return a.every((part, index) => b[index] === part) || b.every((part, index) => a[index] === part);
}

/** One sentence per pair of artifacts that claim the same place, in the sandbox or on the host. */
export function findOverlaps(artifacts: readonly Artifact[]): readonly string[] {
  return artifacts.flatMap((left, index) =>
    artifacts.slice(index + 1).flatMap((right) => {
      const pair = `${quote(left)} and ${quote(right)}`;
      if (isOverlap(artifactDestination(left), artifactDestination(right)))
        return [`the destinations of ${pair} overlap`];
      const isSameService = left.service === right.service;
      return isSameService && isOverlap(trimEnd(left.source), trimEnd(right.source))
        ? [`the sources ${pair} overlap`]
        : [];
    }),
  );
}

function quote({ source, service }: Artifact): string {
  return service === null ? JSON.stringify(source) : `${JSON.stringify(source)} of ${service}`;
}
