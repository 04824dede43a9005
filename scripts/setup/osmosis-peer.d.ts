export declare const osmosisVersion: string;
export declare const osmosisDigest: string;
export declare const pythonImage: string;
export declare const publicPythonImage: string;
export declare function pythonRootArchive(): string;
export declare function osmosisPeerDir(): string;
export declare function provideOsmosisPeer(): Promise<string>;
export declare function osmosisPeerRecord(): Promise<string>;
