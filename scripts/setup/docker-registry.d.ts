export declare function dockerRegistryPath(): string | null;
export declare function provideDockerRegistry(): Promise<string>;
