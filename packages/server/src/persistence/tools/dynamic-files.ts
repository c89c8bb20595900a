const NAME = /^zoo\.cfg\.dynamic\.([\da-f]{1,13})$/

/** A file of a member with the configuration of a version, beside its `myid`. */
export interface DynamicFile {
  readonly name: string
  readonly version: number
}

/** Returns the stored configurations among the names of files, by version. */
export function dynamicFilesIn(names: readonly string[]): DynamicFile[] {
  return names
    .map((name) => ({ name, version: Number.parseInt(NAME.exec(name)?.[1] ?? '', 16) }))
    .filter(({ version }) => version >= 0)
    .sort((a, b) => a.version - b.version)
}
