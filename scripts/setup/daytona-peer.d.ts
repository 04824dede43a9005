export declare const daytonaVersion: string;
export declare function daytonaPeerDir(): string;
export declare function provideDaytonaPeer(): Promise<string>;
