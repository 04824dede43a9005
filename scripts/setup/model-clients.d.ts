export declare function modelClientsDir(): string;
export declare const interpreterFile: string;
export declare function provideModelClients(): Promise<string>;
