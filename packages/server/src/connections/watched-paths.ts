/**
 * Memory of a watch beside its path, in bytes: entries in the set of its connection, in the table of the server and, for recursive
 * watches, in the set of their paths.
 */
const WATCH_BYTES = 250
/** Memory that the watches of one connection may take: some two hundred thousand on ordinary paths. */
export const MAX_WATCH_BYTES = 2 ** 26

/** The paths that a connection watches. Counts the memory of the watches. */
export class WatchedPaths extends Set<string> {
  bytes = 0

  override add(path: string): this {
    if (!this.has(path)) this.bytes += path.length + WATCH_BYTES
    return super.add(path)
  }

  override delete(path: string): boolean {
    const isDeleted = super.delete(path)
    if (isDeleted) this.bytes -= path.length + WATCH_BYTES
    return isDeleted
  }

  override clear(): void {
    super.clear()
    this.bytes = 0
  }
}
