import { bytes, openAcl, type Acl } from '../harness/bytes.ts'
import { createBody, multiBody, type MultiPart } from '../harness/client.ts'
import { op } from '../harness/opcodes.ts'
import { request, type Step } from './case.ts'

type Path = string | Uint8Array | null

export const create = (
  path: string | null,
  data: string | null = '',
  flags = 0,
  on = 'a',
  acl: readonly Acl[] | null = openAcl,
): Step => request(op.create, createBody(path, data, flags, acl), on)
export const create2 = (
  path: string | null,
  data: string | null = '',
  flags = 0,
  on = 'a',
  acl: readonly Acl[] | null = openAcl,
): Step => request(op.create2, createBody(path, data, flags, acl), on)
export const ttlBody = (path: string, flags: number, ttl: bigint): Buffer =>
  bytes()
    .raw(createBody(path, '', flags))
    .long(ttl)
    .done()
export const del = (path: Path, version = -1, on = 'a'): Step =>
  request(op.delete, versionBody(path, version), on)
export const set = (path: Path, data: string | null = 'x', version = -1, on = 'a'): Step =>
  request(op.setData, bytes().str(path).buffer(data).int(version).done(), on)
export const exists = (path: Path, watch = false, on = 'a'): Step =>
  request(op.exists, watchBody(path, watch), on)
export const get = (path: Path, watch = false, on = 'a'): Step =>
  request(op.getData, watchBody(path, watch), on)
export const list = (path: Path, watch = false, on = 'a'): Step =>
  request(op.getChildren, watchBody(path, watch), on)
export const list2 = (path: Path, watch = false, on = 'a'): Step =>
  request(op.getChildren2, watchBody(path, watch), on)
export const getAcl = (path: Path, on = 'a'): Step => request(op.getACL, pathBody(path), on)
export const setAcl = (path: Path, acl: readonly Acl[] | null = openAcl, version = -1, on = 'a'): Step =>
  request(op.setACL, bytes().str(path).acl(acl).int(version).done(), on)
export const sync = (path: Path, on = 'a'): Step => request(op.sync, pathBody(path), on)
export const count = (path: Path, on = 'a'): Step => request(op.getAllChildrenNumber, pathBody(path), on)
export const ephemerals = (path: Path, on = 'a'): Step => request(op.getEphemerals, pathBody(path), on)
export const addWatch = (path: Path, mode: number, on = 'a'): Step =>
  request(op.addWatch, versionBody(path, mode), on)
export const removeWatch = (path: Path, type: number, on = 'a'): Step =>
  request(op.removeWatches, versionBody(path, type), on)
export const checkWatch = (path: Path, type: number, on = 'a'): Step =>
  request(op.checkWatches, versionBody(path, type), on)
export const whoAmI = (on = 'a'): Step => request(op.whoAmI, Buffer.alloc(0), on)
export const close = (on = 'a'): Step => request(op.closeSession, Buffer.alloc(0), on)
export const auth = (scheme: string | null, token: string | null, on = 'a'): Step =>
  request(op.auth, bytes().int(0).str(scheme).buffer(token).done(), on, -4)
export const multi = (parts: readonly MultiPart[], on = 'a'): Step => request(op.multi, multiBody(parts), on)
export const multiRead = (parts: readonly MultiPart[], on = 'a'): Step =>
  request(op.multiRead, multiBody(parts), on)

export const pathBody = (path: Path): Buffer => bytes().str(path).done()
export const watchBody = (path: Path, watch: boolean): Buffer => bytes().str(path).bool(watch).done()
export const versionBody = (path: Path, version: number): Buffer => bytes().str(path).int(version).done()

/** Operations of a multi. */
export const part = {
  create: (path: string | null, flags = 0, acl: readonly Acl[] | null = openAcl): MultiPart => [
    op.create,
    createBody(path, 'm', flags, acl),
  ],
  create2: (path: string, flags = 0): MultiPart => [op.create2, createBody(path, 'm', flags)],
  container: (path: string, flags = 4): MultiPart => [op.createContainer, createBody(path, 'm', flags)],
  ttl: (path: string, flags = 5, ttl = 60_000n): MultiPart => [op.createTTL, ttlBody(path, flags, ttl)],
  delete: (path: Path, version = -1): MultiPart => [op.delete, versionBody(path, version)],
  set: (path: Path, version = -1): MultiPart => [
    op.setData,
    bytes().str(path).buffer('n').int(version).done(),
  ],
  check: (path: Path, version = -1): MultiPart => [op.check, versionBody(path, version)],
  get: (path: Path, watch = false): MultiPart => [op.getData, watchBody(path, watch)],
  list: (path: Path, watch = false): MultiPart => [op.getChildren, watchBody(path, watch)],
} as const

export const acl = (perms: number, scheme: string | null = 'world', id: string | null = 'anyone'): Acl => ({
  perms,
  scheme,
  id,
})
/** The id of user `bob` with password `pw`. */
export const bob = 'bob:ikIaKsbtGweaHnb/jKn7OHqbunM='
