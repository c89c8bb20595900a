/** Characters of all paths that one connection may watch: some hundred thousand ordinary ones. */
export const MAX_WATCHED_PATH_CHARS = 32 * 2 ** 20

/** The paths that a connection watches, with their length in all. */
export class WatchedPaths extends Set<string> {
  chars = 0

  override add(path: string): this {
    if (!this.has(path)) this.chars += path.length
    return super.add(path)
  }

  override delete(path: string): boolean {
    const was = super.delete(path)
    if (was) this.chars -= path.length
    return was
  }

  override clear(): void {
    super.clear()
    this.chars = 0
  }
}
