import { ANYONE, CreateMode, writeCreateRequest, Writer } from '@zabra/protocol'
import type { Identity, SessionId } from '../types.ts'
import type { Tree } from './tree.ts'

/**
 * The node whose children name the users of sessions: an ephemeral node for each session that a client with a SASL login has opened.
 * Only the server creates nodes there.
 */
export const SESSION_USERS_NODE = '/zookeeper/sessions'

/** Returns the path of the node that names the user of a session. */
export const sessionUserPath = (id: SessionId): string =>
  `${SESSION_USERS_NODE}/${BigInt.asUintN(64, id).toString(16).padStart(16, '0')}`

/** Whether only the server and its super user may change a node: it is `/zookeeper/sessions`, or below. */
export const belongsToSessionUsers = (path: string): boolean =>
  path.startsWith(SESSION_USERS_NODE) &&
  (path.length === SESSION_USERS_NODE.length || path.charCodeAt(SESSION_USERS_NODE.length) === SLASH)

const SLASH = 0x2f

/** Returns what the node of a session says about its user; undefined when the session belongs to none. */
export function sessionUserOf(tree: Tree, id: SessionId): Uint8Array | undefined {
  const node = tree.find(sessionUserPath(id))
  if (node === -1 || tree.owners.of(node) !== id) return undefined
  return tree.dataOf(node) ?? new Uint8Array(0)
}

/** The xid of the writes that store users of sessions, with which clients authenticate. No other request of a session has it. */
export const SESSION_USER_XID = -4
/** The identities of these writes: only a super user makes the nodes. */
export const SESSION_USER_IDENTITIES: readonly Identity[] = [{ scheme: 'super', id: '' }]
/** Only a super user may read or change the nodes. */
const NO_PERMISSIONS = [{ perms: 0, id: ANYONE }]

/** Returns the bodies of the create requests that store the proof of a session's user, in their order. */
export function sessionUserRequests(tree: Tree, id: SessionId, proof: Uint8Array): Uint8Array[] {
  const node = createRequest(sessionUserPath(id), proof, CreateMode.EPHEMERAL)
  if (tree.find(SESSION_USERS_NODE) !== -1) return [node]
  return [createRequest(SESSION_USERS_NODE, null, CreateMode.PERSISTENT), node]
}

function createRequest(path: string, data: Uint8Array | null, flags: number): Uint8Array {
  const writer = new Writer(128)
  writeCreateRequest(writer, { path, data, acl: NO_PERMISSIONS, flags })
  return writer.take()
}
