export declare function atifPeersDir(): string;
export declare const interpreterFile: string;
export declare function provideAtifPeers(): Promise<string>;
