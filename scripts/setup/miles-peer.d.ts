export declare const milesVersion: string;
export declare const interpreterFile: string;
export declare function milesPeerDir(): string;
export declare function provideMilesPeer(): Promise<string>;
