import { ErrorCode, OpCode, parentOf, Perms, ProtocolError, type ACL, type Reader } from '@zabra/protocol'
import type { AclRules } from '../auth/index.ts'
import { PATHS } from '../operations/fields.ts'
import { operationOf } from '../operations/table.ts'
import type { DecodedWrite } from '../operations/types.ts'
import type { Tree } from '../tree/index.ts'
import type { Identity } from '../types.ts'

/**
 * Checks the access of a write against the tree of the server that received it, so that a refused one takes no zxid
 * (`ZooKeeperServer.authWriteRequest`, `enableEagerACLCheck`). The check when the write is prepared stays: it counts.
 */
export class EagerAccessCheck {
  readonly #tree: Tree
  readonly #acls: AclRules

  constructor(tree: Tree, acls: AclRules) {
    this.#tree = tree
    this.#acls = acls
  }

  /** Returns NOAUTH or INVALIDACL for a write to refuse, else 0; also for a write of another kind or one that cannot be decoded. */
  check(type: number, body: Reader, identities: readonly Identity[]): number {
    const perms = permsOf(type)
    if (perms === undefined) return ErrorCode.OK
    const { offset } = body
    try {
      const write: DecodedWrite & { readonly acl?: readonly ACL[] | null } = operationOf(type).decode(
        type,
        body,
        PATHS,
      )
      if (write.acl !== undefined && typeof this.#acls.accept(write.acl, identities) === 'string')
        return ErrorCode.INVALIDACL
      return this.#allows(write, perms, identities) ? ErrorCode.OK : ErrorCode.NOAUTH
    } catch (error) {
      if (error instanceof ProtocolError) return ErrorCode.OK
      throw error
    } finally {
      body.offset = offset
    }
  }

  #allows({ type, path }: DecodedWrite, perms: number, identities: readonly Identity[]): boolean {
    if (path === null || !path.startsWith('/')) return true
    const node = this.#tree.find(type === OpCode.setData || type === OpCode.setACL ? path : parentOf(path))
    return node === -1 || this.#acls.allows(this.#tree.aclOf(node), perms, identities)
  }
}

/** Returns the permission that a write needs, at its node or at the parent; undefined for writes that are not checked here. */
function permsOf(type: number): number | undefined {
  if (type === OpCode.create || type === OpCode.create2) return Perms.CREATE
  if (type === OpCode.delete) return Perms.DELETE
  if (type === OpCode.setData) return Perms.WRITE
  return type === OpCode.setACL ? Perms.ADMIN : undefined
}
