/** Returns the path of a child, or of a descendant. A recipe may be used at `/`, the root of a chroot. */
export const below = (path: string, name: string): string => (path === '/' ? `/${name}` : `${path}/${name}`)

/** Returns the parent path. */
export const parentOf = (path: string): string => path.slice(0, Math.max(1, path.lastIndexOf('/')))

/** Returns the last component of a path. */
export const nameOf = (path: string): string => path.slice(path.lastIndexOf('/') + 1)
