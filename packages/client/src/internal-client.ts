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
  /** Returns a client with the same session and no chroot. */
  withoutChroot(): InternalClient
  /** Sends a create without protection against lost replies. */
  createOnce(path: string, data: Data, options: CreateOptions, isProtected?: boolean): Promise<CreateResult>
}
