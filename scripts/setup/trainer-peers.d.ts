export declare function trainerPeersDir(): string;
export declare function provideTrainerPeers(): Promise<string>;
