export declare const harborVersion: string;
export declare const harborDigest: string;
export declare function harborPeerDir(): string;
export declare function harborPython(): string;
export declare function provideHarborPeer(): Promise<string>;
export declare function harborPeerRecord(): Promise<string>;
