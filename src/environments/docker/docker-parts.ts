import type { EngineClient } from './engine/engine-client.ts';
import type { DockerImages } from './images/docker-images.ts';
import type { CompiledDockerOptions, DockerPorts } from './options.ts';
import type { NamespaceScan } from './processes/host-processes.ts';

/** What all environments of one provider share. */
export interface DockerParts {
  readonly engine: EngineClient;
  readonly images: DockerImages;
  readonly options: CompiledDockerOptions;
  readonly ports: DockerPorts;
  readonly namespaces: NamespaceScan;
  /** Processors of the engine's machine; 0 = unknown. */
  readonly engineCpus: number;
  /** The compose CLI as words; null = not found. */
  readonly composeCommand: readonly string[] | null;
}
