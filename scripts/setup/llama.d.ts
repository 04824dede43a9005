export declare function llamaDir(): string;
export declare function provideLlama(): Promise<string>;
