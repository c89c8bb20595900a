import { validatePath } from '@zabra/protocol'
import { UsageError } from './errors.ts'

/**
 * Returns a chroot in its stored form: without a trailing slash, and empty for none. Throws a `UsageError` for an
 * invalid path.
 */
export function normalizeChroot(chroot: string): string {
  if (chroot === '' || chroot === '/') return ''
  const reason =
    typeof chroot === 'string' ? validatePath(chroot) : `Expected a path as a string, got ${typeof chroot}`
  if (reason !== undefined) throw new UsageError(`Expected a chroot that is a path: ${reason}`)
  return chroot
}

/** Returns the server path for a client path. */
export const toServerPath = (root: string, path: string): string =>
  root === '' ? path : path === '/' ? root : root + path

/** Returns the client path for a server path, or undefined when it lies outside the chroot. */
export function toClientPath(root: string, path: string): string | undefined {
  if (root === '') return path
  if (path === root) return '/'
  return path.startsWith(root) && path.charCodeAt(root.length) === 0x2f ? path.slice(root.length) : undefined
}
