export declare function smallModelFile(): string;
export declare function fetchSmallModel(): Promise<string>;
