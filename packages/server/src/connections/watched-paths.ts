/** Characters of all paths that one connection may watch: some hundred thousand ordinary paths. */
export const MAX_WATCHED_PATH_CHARS = 32 * 2 ** 20

/** The paths that a connection watches. Counts their characters. */
export class WatchedPaths extends Set<string> {
  chars = 0

  override add(path: string): this {
    if (!this.has(path)) this.chars += path.length
    return super.add(path)
  }

  override delete(path: string): boolean {
    const isDeleted = super.delete(path)
    if (isDeleted) this.chars -= path.length
    return isDeleted
  }

  override clear(): void {
    super.clear()
    this.chars = 0
  }
}
