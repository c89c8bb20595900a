import type { Connection } from '@zabra/runtime'
import type { ServerId } from '../core/quorum/index.ts'
import type { Identity } from '../core/types.ts'
import type { MemberContext } from './context.ts'

/** A learner that forwards requests. */
export interface Forwarder {
  readonly serverId: ServerId
  readonly accepted: Connection
}

/**
 * Whether the identities in the requests of a learner are believed: it has proved its id, or connects from an address of the member
 * that it claims to be. Any program can connect with the id of a server that no configuration names yet.
 */
export const isBelieved = (
  { membership, security }: Pick<MemberContext, 'membership' | 'security'>,
  { serverId, accepted }: Forwarder,
): boolean => membership.member(serverId) !== undefined || security.isAuthenticated(accepted)

/** Returns the identities of the client of a forwarded request; none where the learner is not believed. */
export const forwardedIdentities = (
  context: Pick<MemberContext, 'membership' | 'security'>,
  learner: Forwarder,
  auth: readonly Identity[] | null,
): readonly Identity[] => (auth !== null && isBelieved(context, learner) ? auth : NO_IDENTITIES)

const NO_IDENTITIES: readonly Identity[] = []

/** The line about a learner that is not believed. */
export const NOT_BELIEVED =
  'A server that no configuration names has joined without a proof of its id. The identities of its clients are not believed until a configuration names it'
