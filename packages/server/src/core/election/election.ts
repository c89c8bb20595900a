import {
  parseConfiguration,
  printConfiguration,
  sameMembership,
  verifierOf,
  votersOfAll,
  ConfigurationError,
  type EnsembleConfiguration,
  type QuorumVerifiers,
  type ServerId,
} from '../quorum/index.ts'
import type { Notification } from './notification.ts'
import type { Configurations, ElectionInput, ElectionOptions, ElectionWork, ElectionState } from './types.ts'
import {
  isConfirmedLeader,
  isBetterVote,
  hasQuorum,
  isSameVote,
  NO_VALUE,
  UNTRUSTED_ZXID,
  type ReceivedVote,
  type ReceivedVotes,
  type PeerState,
  type Vote,
} from './vote.ts'

/**
 * One server's part in choosing a leader (FastLeaderElection), without clock or network: inputs in, work out.
 *
 * Everybody tells everybody whom they would follow and changes their mind for a better candidate, until a quorum agrees.
 * Nothing here is kept on disk, and nothing has to be: two servers may both believe that they were elected, and the epoch
 * that a quorum grants to one of them alone decides. What an election must give is progress, and a leader that lacks
 * nothing that its quorum has.
 * Rules are numbered; in brackets stands their section in the description of the server protocol.
 */
export class Election {
  readonly #options: ElectionOptions
  #state: PeerState = 'looking'
  /** Looks for a leader, and has not been told of a newer configuration meanwhile. */
  #isRunning = false
  #isFinalizing = false
  #own: ElectionState | undefined
  #verifiers: QuorumVerifiers | undefined
  #voters: readonly ServerId[] = []
  #configuration = ''
  /** E1 Counts elections; in memory only. */
  #round = 0
  #vote: Vote = { leader: NO_VALUE, zxid: NO_VALUE, round: 0, epoch: NO_VALUE }
  /** Ballots of this round. */
  readonly #received = new Map<ServerId, ReceivedVote>()
  /** Ballots of those who have a role, of whatever round. */
  readonly #outOfElection = new Map<ServerId, ReceivedVote>()
  #notificationIntervalMs: number
  #oracleAllows = false
  /** What was answered to what since votes were last sent, by server. */
  readonly #replies = new Map<ServerId, string>()
  /** Servers that have hung up and not come back. One that was never there may be about to start, and is waited for. */
  readonly #unreachable = new Set<ServerId>()
  /** Servers whose configuration was complained of in this election. */
  readonly #warnedAbout = new Set<ServerId>()
  #work: ElectionWork[] = []

  constructor(settings: ElectionOptions) {
    this.#options = settings
    this.#notificationIntervalMs = settings.minNotificationIntervalMs
  }

  get state(): PeerState {
    return this.#state
  }

  get round(): number {
    return this.#round
  }

  /** The vote that others are told of: the proposal while looking, afterwards what was decided. */
  get vote(): Vote {
    return this.#vote
  }

  /** Takes one input and returns what is to be done. Before the first `look` there is nothing to do for anything else. */
  step(input: ElectionInput): readonly ElectionWork[] {
    this.#work = []
    if (input.type === 'reach') this.#setReachable(input.to, input.reachable)
    else if (input.type === 'look') this.#look(input.footing)
    else if (this.#own !== undefined) this.#dispatch(input)
    return this.#work
  }

  #dispatch(input: Exclude<ElectionInput, { type: 'look' | 'reach' }>): void {
    switch (input.type) {
      case 'heard':
        if (input.from !== this.#options.self) this.#receive(input.from, input.notification)
        return
      case 'timeout':
        if (!this.#isRunning) return
        if (input.timer === 'resend') this.#resend()
        else if (this.#isFinalizing) this.#decide(this.#vote)
        return
      case 'oracle':
        this.#oracleAllows = input.goOn
        return
      case 'installed':
        // E2 The vote tells late comers the epoch that the leader leads in, not the one that it was elected with.
        if (this.#state !== 'looking') this.#vote = { ...this.#vote, epoch: input.epoch }
        return
      case 'assigned':
        // E22 (14.5) Others are told of the leader that the change has named; what it had is not known, nor does it matter.
        this.#state = input.state
        this.#vote = { ...this.#vote, leader: input.leader }
        return
      case 'configured':
        this.#configure(input.configurations)
    }
  }

  /** E3 An election begins with the next round, a vote for oneself, and a word to everybody. */
  #look(footing: ElectionState): void {
    this.#own = footing
    this.#configure(footing)
    this.#state = 'looking'
    this.#isRunning = true
    this.#received.clear()
    this.#outOfElection.clear()
    this.#replies.clear()
    this.#warnedAbout.clear()
    this.#stopFinalizing()
    this.#round++
    this.#notificationIntervalMs = this.#options.minNotificationIntervalMs
    this.#vote = this.#ownVote()
    this.#broadcast()
    this.#startResendTimer()
    this.#checkQuorum()
  }

  #configure({ active, proposed }: Configurations): void {
    const newer = proposed !== undefined && proposed.version > active.version ? proposed : undefined
    const { oracle } = this.#options
    this.#verifiers = {
      active: verifierOf(active, { oracle }),
      ...(newer === undefined ? {} : { proposed: verifierOf(newer) }),
    }
    this.#voters = votersOfAll(this.#verifiers)
    this.#configuration = printConfiguration(active)
    const { zxid, epoch } = this.#own!
    this.#own = { zxid, epoch, active, ...(newer === undefined ? {} : { proposed: newer }) }
  }

  /**
   * E4 A voter votes for itself. An observer has no candidate at all. A participant that the configuration does
   * not name yet shows what it has, but nobody can follow it.
   */
  #ownVote(): Vote {
    const { active, zxid, epoch } = this.#own!
    const { self } = this.#options
    if (this.#isObserver()) return { leader: NO_VALUE, zxid: NO_VALUE, round: this.#round, epoch: NO_VALUE }
    const leader = active.members.has(self) ? self : NO_VALUE
    return { leader, zxid, round: this.#round, epoch }
  }

  #isObserver(): boolean {
    return this.#own!.active.members.get(this.#options.self)?.role === 'observer'
  }

  // What comes in, before it counts for the election

  #receive(from: ServerId, notification: Notification): void {
    if (this.#adoptConfiguration(from, notification)) return
    // E6 (5.2 rule 2) Who has no voice is told how things stand while it looks, and has no influence.
    const looks = notification.state === 'looking'
    if (!this.#voters.includes(from)) return looks ? this.#reply(from, notification.vote) : undefined
    if (this.#state !== 'looking') {
      // E7 (5.2 rule 5) Who looks is told whom I follow, with the round of that vote.
      return looks ? this.#reply(from, notification.vote) : undefined
    }
    // E8 (5.2 rule 4) Who is in an older round is told of mine. So is, of my round, who has a worse candidate: it may have
    // been told of mine while it still had a role, and would hear of it again only when votes are repeated.
    if (looks && this.#isBehind(notification.vote)) this.#reply(from, notification.vote)
    if (this.#isRunning) this.#count(from, notification)
  }

  #isBehind(vote: Vote): boolean {
    if (vote.round !== this.#round) return vote.round < this.#round
    return this.#isRunning && vote.zxid !== UNTRUSTED_ZXID && isBetterVote(this.#vote, vote, this.#verifiers!)
  }

  /**
   * E26 Two servers that look, under configurations that do not name each other, would answer each other's answers for
   * ever: the same words get the same answer once, until votes are sent again.
   */
  #reply(to: ServerId, heard: Vote): void {
    // Voters hear the round in which the vote was decided, others the one that is counted here.
    const vote = this.#voters.includes(to) ? this.#vote : { ...this.#vote, round: this.#round }
    const exchange = [heard, vote]
      .map(({ leader, zxid, round, epoch }) => `${leader} ${zxid} ${round} ${epoch}`)
      .join()
    if (this.#isRunning && this.#replies.get(to) === exchange) return
    this.#replies.set(to, exchange)
    this.#send(to, vote)
  }

  /**
   * E5 (5.2 rule 1, 14.7) While looking, a newer configuration is taken over, and if it has other members, or other
   * addresses, the election starts again under it. Where configurations do not change at run time, each server abides by
   * its own: they may differ while files are being edited one after the other, and nobody should be kept from electing.
   */
  #adoptConfiguration(from: ServerId, { configuration }: Notification): boolean {
    if (!this.#isRunning || configuration === undefined || configuration === this.#configuration) return false
    const received = this.#readConfiguration(from, configuration)
    const footing = this.#own!
    if (received === undefined) return false
    const restart = !sameMembership(received, footing.active)
    if (!this.#options.adoptsConfigurations) {
      const sentence = 'Another server has other members in its configuration; each goes by its own'
      if (restart) this.#warnOnce(from, { version: received.version }, sentence)
      return false
    }
    if (received.version <= footing.active.version) return false
    if (restart) {
      this.#isRunning = false
      this.#stopTimers()
    } else this.#configure({ ...footing, active: received })
    this.#work.push({ do: 'configure', configuration: received, from, restart })
    return restart
  }

  #readConfiguration(from: ServerId, text: string): EnsembleConfiguration | undefined {
    try {
      return parseConfiguration(text)
    } catch (error) {
      if (!(error instanceof ConfigurationError)) throw error
      const sentence =
        'The configuration that another server told of cannot be read; its vote counts all the same'
      this.#warnOnce(from, { reason: error.message }, sentence)
      return undefined
    }
  }

  /** Once per server and election. */
  #warnOnce(from: ServerId, facts: object, sentence: string): void {
    if (this.#warnedAbout.has(from)) return
    this.#warnedAbout.add(from)
    this.#work.push({ do: 'warn', facts: { from, ...facts }, sentence })
  }

  // Choosing

  #count(from: ServerId, notification: Notification): void {
    // E9 Only voters can be voted for.
    if (!this.#voters.includes(notification.vote.leader)) return
    if (this.#isFinalizing && !this.#interruptsFinalizing(from, notification)) return
    switch (notification.state) {
      case 'looking':
        return this.#countLooking(from, notification.vote)
      case 'following':
      case 'leading':
        return this.#countDecided(from, notification)
      case 'observing':
    }
  }

  /**
   * E10 Once a quorum agrees, nothing but a better vote counts until the wait is over, except that others who agree bring
   * its end nearer (E23).
   */
  #interruptsFinalizing(from: ServerId, { state, vote }: Notification): boolean {
    if (state === 'looking' && vote.round < this.#round) return false
    if (!isBetterVote(vote, this.#vote, this.#verifiers!)) {
      const ballot: ReceivedVote = { ...vote, state, version: 0 }
      if (state !== 'looking' || !isSameVote(ballot, this.#proposal())) return false
      this.#received.set(from, ballot)
      this.#finalizeEarly()
      return false
    }
    this.#stopFinalizing()
    this.#startResendTimer()
    return true
  }

  #countLooking(from: ServerId, vote: Vote): void {
    // E11 Data that cannot be trusted must not choose a leader: neither mine nor that of others.
    if (this.#own!.zxid === UNTRUSTED_ZXID || vote.zxid === UNTRUSTED_ZXID) return
    if (vote.round < this.#round) return
    if (vote.round > this.#round) {
      // E12 A later round counts alone: what was said in earlier ones is void.
      this.#round = vote.round
      this.#received.clear()
      const own = this.#ownVote()
      this.#changeVote(isBetterVote(vote, own, this.#verifiers!) ? vote : own)
    } else if (isBetterVote(vote, this.#vote, this.#verifiers!)) {
      // E13 A better candidate gets my voice too, and everybody hears of it.
      this.#changeVote(vote)
    }
    this.#received.set(from, { ...vote, state: 'looking', version: 0 })
    this.#checkQuorum()
  }

  /** E24 Whoever gets my voice soon has a role, and says so to who repeats its vote: that is not left for long. */
  #changeVote({ leader, zxid, epoch }: Vote): void {
    this.#vote = { leader, zxid, round: this.#round, epoch }
    this.#broadcast()
    if (this.#notificationIntervalMs === this.#options.minNotificationIntervalMs) return
    this.#notificationIntervalMs = this.#options.minNotificationIntervalMs
    this.#startResendTimer()
  }

  /** E14 When a quorum has my vote, a while is left for better ones. */
  #checkQuorum(): void {
    if (this.#isFinalizing || !hasQuorum(this.#received, this.#proposal(), this.#verifiers!)) return
    this.#isFinalizing = true
    this.#work.push({ do: 'stop', timer: 'resend' })
    this.#work.push({ do: 'start', timer: 'settle', afterMs: this.#options.finalizeWaitMs })
    this.#finalizeEarly()
  }

  /**
   * E23 Nobody is left to wait for when each voter has given its voice to my candidate, or cannot be heard at all. Whoever
   * comes back later finds a leader, as it would after the wait.
   */
  #finalizeEarly(): void {
    const proposal = this.#proposal()
    const hasSpoken = (id: ServerId): boolean => {
      const ballot = this.#received.get(id)
      return ballot !== undefined && isSameVote(ballot, proposal)
    }
    if (this.#others().every((id) => this.#unreachable.has(id) || hasSpoken(id))) this.#decide(this.#vote)
  }

  #setReachable(to: ServerId, reachable: boolean): void {
    if (reachable) this.#unreachable.delete(to)
    else this.#unreachable.add(to)
    if (this.#isRunning && this.#isFinalizing) this.#finalizeEarly()
  }

  #proposal(): ReceivedVote {
    return { ...this.#vote, state: 'looking', version: 0 }
  }

  #countDecided(from: ServerId, { state, vote, version }: Notification): void {
    const ballot: ReceivedVote = { ...vote, state, version }
    // E15 Somebody may have decided in my own round already, perhaps with my voice. Kept without version, so that the epoch,
    // which the leader may have raised meanwhile, does not keep votes of one round apart.
    if (vote.round === this.#round) {
      this.#received.set(from, { ...ballot, version: 0 })
      if (this.#isEstablishedLeader(this.#received, ballot)) return this.#decide(vote)
    }
    // E16 An established leader is joined in whatever round it was elected, even with a better vote at hand.
    this.#outOfElection.set(from, ballot)
    if (this.#isEstablishedLeader(this.#outOfElection, ballot)) {
      this.#round = vote.round
      return this.#decide(vote)
    }
    // E17 Of two servers one leads by the oracle's word. Unless the oracle says the same of me, I join it.
    if (state === 'leading' && this.#verifiers!.active.canAskOracle && !this.#oracleAllows) {
      this.#round = vote.round
      this.#decide(vote)
    }
  }

  /**
   * E25 Whoever else leads does so by the configuration in force: of one that I alone have logged, those whom it would give a
   * voice may know nothing, and whom it would not give one has a voice still. I myself do know of it, and cannot lead without
   * a quorum of both.
   */
  #isEstablishedLeader(ballots: ReceivedVotes, ballot: ReceivedVote): boolean {
    const { self } = this.#options
    const { active } = this.#verifiers!
    const quorums = ballot.leader === self ? this.#verifiers! : { active }
    return hasQuorum(ballots, ballot, quorums) && isConfirmedLeader(ballots, ballot, self, this.#round)
  }

  /** E18 After a silence everybody hears my vote again; the next silence may last twice as long. */
  #resend(): void {
    if (this.#isFinalizing) return
    this.#notificationIntervalMs = Math.min(
      this.#notificationIntervalMs * 2,
      this.#options.maxNotificationIntervalMs,
    )
    this.#replies.clear()
    this.#work.push({ do: 'connect', to: this.#others() })
    this.#broadcast()
    this.#startResendTimer()
    this.#checkQuorum()
    // E19 One of two goes on alone when the oracle says so, and not before the other one had time to speak.
    const alone = this.#verifiers!.active.canAskOracle && this.#oracleAllows
    if (!this.#isFinalizing && alone && this.#received.has(this.#options.self)) this.#decide(this.#vote)
  }

  /** E20 The role follows from the vote; an observer follows without a voice. */
  #decide(vote: Vote): void {
    this.#isRunning = false
    this.#stopTimers()
    this.#vote = vote
    const following = this.#isObserver() ? 'observing' : 'following'
    this.#state = vote.leader === this.#options.self ? 'leading' : following
    this.#work.push({ do: 'decide', state: this.#state, vote })
  }

  // Going out

  /** E21 Every voter hears my vote, I myself among them if I am one. */
  #broadcast(): void {
    for (const to of this.#others()) this.#send(to, this.#vote)
    const { self } = this.#options
    if (this.#voters.includes(self) && this.#own!.zxid !== UNTRUSTED_ZXID)
      this.#received.set(self, this.#proposal())
  }

  #others(): ServerId[] {
    return this.#voters.filter((id) => id !== this.#options.self)
  }

  #send(to: ServerId, vote: Vote): void {
    this.#work.push({ do: 'send', to, state: this.#state, vote, configuration: this.#configuration })
  }

  #startResendTimer(): void {
    this.#work.push({ do: 'start', timer: 'resend', afterMs: this.#notificationIntervalMs })
  }

  #stopFinalizing(): void {
    if (this.#isFinalizing) this.#work.push({ do: 'stop', timer: 'settle' })
    this.#isFinalizing = false
  }

  #stopTimers(): void {
    this.#stopFinalizing()
    this.#work.push({ do: 'stop', timer: 'resend' })
  }
}
