export declare const oldestNats: string;
export declare function isNewEnough(version: string | null): boolean;
export declare function natsServerPath(): Promise<string | null>;
export declare function provideNatsServer(): Promise<string>;
