import { validatePath } from '@zabra/protocol'
import { UsageError } from './errors.ts'

/** A chroot as it is kept: without a trailing slash, and empty for none. Throws a `UsageError` when it is no path. */
export function normalizeChroot(chroot: string | undefined): string {
  if (chroot === undefined || chroot === '' || chroot === '/') return ''
  const reason = validatePath(chroot)
  if (reason !== undefined) throw new UsageError(`Expected a chroot that is a path: ${reason}`)
  return chroot
}

/** The path on the servers of a path of the client. */
export const toServerPath = (root: string, path: string): string =>
  root === '' ? path : path === '/' ? root : root + path

/** The path of the client of a path on the servers, or undefined when it lies outside the root. */
export function toClientPath(root: string, path: string): string | undefined {
  if (root === '') return path
  if (path === root) return '/'
  return path.startsWith(root) && path.charCodeAt(root.length) === 0x2f ? path.slice(root.length) : undefined
}
