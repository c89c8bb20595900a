import { toServerPath } from './chroot.ts'
import type { Client } from './client-api.ts'
import type { Session } from './session/session.ts'
import type { CreateOptions, CreateResult, Data } from './types.ts'

/** What composed operations, such as `createMissing` and protected creates, need of a client besides its public API. */
export interface InternalClient extends Client {
  readonly chrootPath: string
  /** The session that all clients derived from one connect() share. */
  readonly sharedSession: Session
  /** Returns a client for background work: without timeouts, it stays open when this one closes. */
  clone(): InternalClient
  unordered(): InternalClient
  /** Returns this client without the timeout that `connect` gave to its calls. */
  withoutTimeout(): InternalClient
  /** Returns a client with the same session and no chroot. */
  withoutChroot(): InternalClient
  /** Sends a create without protection against lost replies. */
  createOnce(path: string, data: Data, options: CreateOptions, isProtected?: boolean): Promise<CreateResult>
}

/**
 * Returns a client without the option `timeoutMs` of its `connect`: what waits through an outage must not end with one
 * request. Returns the client itself if it has none, or is not one of this package.
 */
export const withoutTimeout = (client: Client): Client =>
  (client as Partial<InternalClient>).withoutTimeout?.() ?? client

/** Returns whether a path is that of the znode that belongs to the servers: it is none below a chroot. */
export const isReserved = (client: Client, path: string): boolean =>
  toServerPath((client as Partial<InternalClient>).chrootPath ?? '', path) === '/zookeeper'
