/** A file or folder on this host that the archive keeps, by its name there. Links in it are refused. */
export interface KeptFile {
  readonly name: string;
  readonly path: string;
}
