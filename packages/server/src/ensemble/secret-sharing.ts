import type { Connection } from '@zabra/runtime'
import type { ServerId } from '../core/quorum/index.ts'
import {
  decodeSecretReport,
  encodeSecretReport,
  NO_ZXID,
  PacketType,
  type MemberExtension,
  type SecretReport,
  type SharedSecret,
} from '../core/zab/index.ts'
import type { SharedSessionSecret } from '../database/index.ts'
import type { MemberContext } from './context.ts'
import type { LearnerConnection } from './learner-connection.ts'

/** What a member needs to share the secret of sessions. */
export type SecretContext = Pick<MemberContext, 'platform' | 'membership' | 'sessionIds'> & {
  readonly sharedSecret: SharedSessionSecret
}

/** A learner that is up to date: what it has reported of the current generation. */
interface LearnerSecret {
  /** Whether it takes part: it is authenticated, and no member of Apache ZooKeeper. */
  readonly takesPart: boolean
  holders: readonly ServerId[]
  others: readonly ServerId[]
}

/**
 * Shares the secret of sessions with the learners of a leader, or of a follower that serves observers (quorum-protocol 18.5): offers
 * it to each, and collects which servers have it on disk and which do not take part.
 */
export class SecretSharing {
  readonly #context: SecretContext
  /** Called when what the learners have reported has changed. */
  readonly #changed: () => void
  readonly #learners = new Map<LearnerConnection, LearnerSecret>()

  constructor(context: SecretContext, changed: () => void) {
    this.#context = context
    this.#changed = changed
  }

  /** Returns all reports in one, with this server as a holder. */
  get report(): SecretReport {
    const all = [...this.#learners.values()]
    return {
      secret: this.#context.sharedSecret.current,
      holders: [this.#context.membership.self, ...all.flatMap(({ holders }) => holders)],
      others: all.flatMap(({ others }) => others),
    }
  }

  /** Offers the secret to a learner that is up to date from the next packet on. */
  add(learner: LearnerConnection): void {
    const takesPart = learner.sharesSecret
    this.#learners.set(learner, { takesPart, holders: [], others: takesPart ? [] : [learner.serverId] })
    if (takesPart) this.#offer(learner)
    else this.#changed()
  }

  remove(learner: LearnerConnection): void {
    if (this.#learners.delete(learner)) this.#changed()
  }

  /** Takes the report of a learner, and its secret if that is of a higher generation. Throws a `ProtocolError` for malformed data. */
  receive(learner: LearnerConnection, data: Uint8Array | null): void {
    const known = this.#learners.get(learner)
    if (known === undefined || !known.takesPart) return
    const { secret, holders, others } = decodeSecretReport(data)
    const { current } = this.#context.sharedSecret
    if (secret.generation > current.generation) this.use(secret)
    else if (!isSame(secret, current)) return this.#offer(learner)
    known.holders = holders
    known.others = others
    this.#changed()
  }

  /** Uses another secret, and offers it to all learners, whose reports about the former one are void. */
  use(secret: SharedSecret): void {
    void adoptSecret(this.#context, secret)
    for (const [learner, known] of this.#learners) {
      known.holders = []
      if (!known.takesPart) continue
      known.others = []
      this.#offer(learner)
    }
  }

  #offer(learner: LearnerConnection): void {
    const { current: secret } = this.#context.sharedSecret
    const data = encodeSecretReport({ secret, holders: [], others: [] })
    learner.send(PacketType.sessionSecret, NO_ZXID, data)
  }
}

/**
 * Decides, at an established leader, when the secret is used: as soon as all members have it, and no longer while a server that does
 * not take part is connected. Passwords follow the formula of Apache ZooKeeper otherwise.
 */
export class SecretAuthority {
  readonly sharing: SecretSharing
  readonly #context: SecretContext
  #named = ''

  constructor(context: SecretContext) {
    this.#context = context
    this.sharing = new SecretSharing(context, () => this.decide())
  }

  /** Decides anew: reports or the configuration have changed. */
  decide(): void {
    const { membership, sharedSecret, platform } = this.#context
    const { current } = sharedSecret
    const { holders, others } = this.sharing.report
    this.#nameOthers(others)
    const generation = current.generation + 1
    if (others.length > 0) {
      if (current.since !== undefined) this.sharing.use({ ...current, generation, since: undefined })
    } else if (current.since === undefined) {
      const known = new Set(holders)
      if (![...membership.active.members.keys()].every((id) => known.has(id))) return
      const since = Math.floor(platform.clock.wall())
      platform.logger.info(
        { generation },
        'All members share a secret. The passwords of new sessions follow from it',
      )
      this.sharing.use({ ...current, generation, since })
    }
  }

  /** Names the servers because of which passwords can be computed from ids, once. */
  #nameOthers(others: readonly ServerId[]): void {
    const names = [...others].sort((a, b) => a - b).join()
    if (names === this.#named) return
    this.#named = names
    if (names === '') return
    this.#context.platform.logger.warn({ servers: names }, withoutSecret)
  }
}

const withoutSecret =
  'Servers take no part in the secret of sessions: they run Apache ZooKeeper, or did not prove who they are. Until they leave, the passwords of new sessions follow from their ids, which the stats of ephemeral nodes show'

/** The side of a learner: takes the secret that its leader, or the follower that it observes, offers, and reports it. */
export class SecretRecipient {
  readonly #context: SecretContext
  readonly #send: (data: Uint8Array) => void
  /** The observers of this server. */
  #observers: SecretSharing | undefined
  #isOffered = false

  /** `send` sends a report. */
  constructor(context: SecretContext, send: (data: Uint8Array) => void) {
    this.#context = context
    this.#send = send
  }

  /** Shares the secret with observers from now on. */
  shareWithObservers(): SecretSharing {
    return (this.#observers = new SecretSharing(this.#context, () => this.#report()))
  }

  /** Takes an offer, unless the own secret is of a higher generation. Throws a `ProtocolError` for malformed data. */
  receive(data: Uint8Array | null): void {
    const { secret } = decodeSecretReport(data)
    const { current } = this.#context.sharedSecret
    this.#isOffered = true
    if (secret.generation < current.generation || isSame(secret, current)) return this.#report()
    this.#observers?.use(secret)
    void adoptSecret(this.#context, secret).then((isStored) => {
      if (isStored) this.#report()
    })
  }

  /** This server is up to date. Where no secret was offered, not all servers take part, and none is used. */
  onServing(): void {
    const { sharedSecret, platform } = this.#context
    const { current } = sharedSecret
    if (this.#isOffered) return
    platform.logger.warn({}, withoutSecret)
    if (current.since === undefined) return
    void adoptSecret(this.#context, { ...current, generation: current.generation + 1, since: undefined })
  }

  #report(): void {
    const { sharedSecret, membership } = this.#context
    if (!this.#isOffered) return
    const { current: secret } = sharedSecret
    const report = this.#observers?.report ?? { secret, holders: [membership.self], others: [] }
    this.#send(encodeSecretReport(report))
  }
}

/**
 * Uses a secret in memory at once, and resolves to whether it is on disk. The ids of sessions begin anew where the secret comes into
 * use, since they tell which sessions are older than it.
 */
async function adoptSecret(
  { sharedSecret, sessionIds, platform }: SecretContext,
  secret: SharedSecret,
): Promise<boolean> {
  if (sharedSecret.current.since !== secret.since) sessionIds.renew(platform.clock.wall())
  try {
    await sharedSecret.adopt(secret)
    return true
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    platform.logger.warn({ reason }, 'The secret of sessions cannot be written to disk; it is kept in memory')
    return false
  }
}

/** Whether a learner takes part: it says so, and has proved who it is. */
export const takesPartInSecret = (
  { sharedSecret, security }: Pick<MemberContext, 'sharedSecret' | 'security'>,
  extension: MemberExtension | undefined,
  connection: Connection,
): boolean =>
  sharedSecret !== undefined && extension?.sharesSecret === true && security.isAuthenticated(connection)

const isSame = (a: SharedSecret, b: SharedSecret): boolean =>
  a.generation === b.generation && a.since === b.since && a.bytes.every((byte, i) => byte === b.bytes[i])
