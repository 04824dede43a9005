export declare const interpreterFile: string;
export function templatePeersDir(): string;
export function provideTemplatePeers(): Promise<string>;
