/**
 * Returns why `path` is not a valid path of a znode, or undefined when it is valid (`PathUtils.validatePath`). With `sequential` a
 * trailing slash is allowed, since a number follows it.
 */
export function validatePath(path: string | null, sequential = false): string | undefined {
  if (path === null) return 'Expected a path, got null'
  if (path.length === 0) return 'Expected a path, got an empty string'
  if (path.charCodeAt(0) !== SLASH) return `Expected a path that starts with /, got ${quote(path)}`
  if (path.length === 1) return undefined
  if (!sequential && path.charCodeAt(path.length - 1) === SLASH)
    return `Expected no / at the end of ${quote(path)}`
  let start = 1
  for (let i = 1; i <= path.length; i++) {
    const unit = i < path.length ? path.charCodeAt(i) : SLASH
    if (unit === SLASH) {
      const reason = componentReason(path, start, i, sequential)
      if (reason !== undefined) return reason
      start = i + 1
    } else if (isForbidden(unit)) {
      return `Expected no character U+${unit.toString(16).toUpperCase().padStart(4, '0')} in a path, got one at index ${i}`
    }
  }
  return undefined
}

const SLASH = 0x2f
const DOT = 0x2e

function componentReason(path: string, start: number, end: number, sequential: boolean): string | undefined {
  if (start === end)
    return sequential && end === path.length ? undefined : `Expected no empty component in ${quote(path)}`
  if (path.charCodeAt(start) !== DOT) return undefined
  const length = end - start
  if (length === 1 || (length === 2 && path.charCodeAt(start + 1) === DOT)) {
    return `Expected no relative component (. or ..) in ${quote(path)}`
  }
  return undefined
}

/** Returns whether a character is a control character, a surrogate, in the private use area, or one of U+FFF0 to U+FFFF. */
function isForbidden(unit: number): boolean {
  if (unit < 0x7f) return unit < 0x20
  return unit <= 0x9f || (unit >= 0xd800 && unit <= 0xf8ff) || unit >= 0xfff0
}

const quote = (path: string): string => JSON.stringify(path.length > 200 ? `${path.slice(0, 200)}…` : path)

/** Returns the path of the parent: the text before the last slash, `/` for children of the root. */
export function parentOf(path: string): string {
  const slash = path.lastIndexOf('/')
  return slash <= 0 ? '/' : path.slice(0, slash)
}

/** Returns the path of a child, or of a descendant. */
export const childPath = (parent: string, name: string): string =>
  parent === '/' ? `/${name}` : `${parent}/${name}`

/** Returns the text after the last slash. */
export const nameOf = (path: string): string => path.slice(path.lastIndexOf('/') + 1)
