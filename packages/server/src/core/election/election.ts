import { formatZxid } from '@zabra/protocol'
import {
  isQuorumOfAll,
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
import { isAhead } from '../log-position.ts'
import { RingBuffer } from '../ring-buffer.ts'
import { MAX_ROUND, type Notification } from './notification.ts'
import type { Configurations, ElectionInput, ElectionOptions, ElectionState, ElectionWork } from './types.ts'
import {
  isConfirmedLeader,
  isOfTerm,
  isBetterVote,
  hasQuorum,
  isSameVote,
  NO_VALUE,
  supportersOf,
  type LeaderTerm,
  UNTRUSTED_ZXID,
  type ReceivedVote,
  type ReceivedVotes,
  type PeerState,
  type Vote,
} from './vote.ts'

type Received = Extract<ElectionInput, { type: 'notification' }>

/** The last vote of a voter that looks. */
interface LookingVote extends Vote {
  readonly isForeign: boolean
}

/** Servers to which the last reply is remembered; any id may ask where servers may join. */
const MAX_REPLIES = 1000

/**
 * How far the round of a single voter may be from that of this server. Honest servers are a few elections apart; one message
 * must not use up the rounds of all.
 */
const MAX_ROUND_JUMP = 2 ** 20

/** The longest configuration that is read from a message, in characters: parsing one takes milliseconds, and has hundreds of servers. */
const MAX_CONFIGURATION = 16 * 1024

/** Rounds in which a server has the votes of the active configuration, and not those of the proposed one, before it lets others lead. */
const MAX_VAIN_ROUNDS = 3

/** A server that votes for another one begins the next round when it has sent that vote so often again: after 6 s by default. */
const MAX_RESENDS = 5

/**
 * The FastLeaderElection state machine of one server (quorum-protocol 5), without clock or network.
 *
 * Every voter sends its vote to every other voter and adopts a better one that it receives, until a quorum agrees. Nothing
 * is persisted, and safety does not depend on it: two servers may both believe that they are elected, and only one of them
 * gets an epoch accepted by a quorum (quorum-protocol 8). An election has to make progress and to elect a server that has
 * all that its quorum has.
 */
export class Election {
  readonly #options: ElectionOptions
  #state: PeerState = 'looking'
  /** Whether the server is looking and does not wait for `look` after a restart for a newer configuration. */
  #isRunning = false
  /** Whether a quorum agrees and the election waits for a better vote. */
  #isFinalizing = false
  #own: ElectionState | undefined
  #verifiers: QuorumVerifiers | undefined
  #voters: readonly ServerId[] = []
  #configuration = ''
  /** The configuration that this server has logged and not activated, where it is newer. */
  #proposed: string | undefined
  /** The logical clock: counts elections, in memory only. */
  #round = 0
  #vote: Vote = { leader: NO_VALUE, zxid: NO_VALUE, round: 0, epoch: NO_VALUE }
  /** Votes of this round (`recvset`). */
  readonly #received = new Map<ServerId, ReceivedVote>()
  /** Votes of servers with a role, of any round (`outofelection`). */
  readonly #outOfElection = new Map<ServerId, ReceivedVote>()
  /**
   * Votes of servers whose last notification says that they have a role, of any round. A leader is in here only if it has the
   * configuration of this server, or the one that this server has logged.
   */
  readonly #inRole = new Map<ServerId, ReceivedVote>()
  /** Votes of voters whose last notification says that they look and trust their data, of any round. */
  readonly #looking = new Map<ServerId, LookingVote>()
  /** Voters that have sent a round far beyond that of this server. */
  readonly #farAhead = new Set<ServerId>()
  /** The texts of newer configurations that voters have sent, until a quorum has sent the same. */
  readonly #newerConfigurations = new Map<ServerId, string>()
  /** A leader that has refused this server repeatedly. */
  #avoided: ServerId | undefined
  /** A leader with which this server has no vote. */
  #withoutVote: LeaderTerm | undefined
  #notificationIntervalMs: number
  /** How often the vote was sent to all again. */
  #resends = 0
  /** In how many rounds this server was elected in vain, and the last of them. */
  #vainRounds = 0
  #lastVainRound = -1
  #oracleAllows = false
  /** By server, the last received vote and the reply to it, since votes were last sent to all. */
  readonly #replies = new Map<ServerId, string>()
  /** Servers whose connection has closed. A server that was never connected may be starting, so it is not in here. */
  readonly #unreachable = new Set<ServerId>()
  /** Servers whose configuration caused a warning in this election. */
  readonly #warnedAbout = new Set<ServerId>()
  readonly #work = new RingBuffer<ElectionWork | undefined>(undefined)

  constructor(options: ElectionOptions) {
    this.#options = options
    this.#notificationIntervalMs = options.minNotificationIntervalMs
  }

  get state(): PeerState {
    return this.#state
  }

  get round(): number {
    return this.#round
  }

  /** The vote sent to others: the current proposal while looking, the decided vote afterwards. */
  get vote(): Vote {
    return this.#vote
  }

  /** Removes and returns the next work for the host, or returns undefined. */
  nextWork(): ElectionWork | undefined {
    return this.#work.shift()
  }

  /**
   * Processes an input. Afterwards the host performs all work that `nextWork` returns. Before the first `look` all other inputs
   * yield no work.
   */
  step(input: ElectionInput): void {
    if (input.type === 'reachability') this.#setReachable(input.to, input.isReachable)
    else if (input.type === 'look') this.#look(input)
    else if (this.#own !== undefined) this.#dispatch(input)
  }

  #dispatch(input: Exclude<ElectionInput, { type: 'look' | 'reachability' }>): void {
    switch (input.type) {
      case 'notification':
        if (input.from !== this.#options.self) this.#receive(input)
        return
      case 'timeout':
        if (!this.#isRunning) return
        if (input.timer === 'resend') this.#resend()
        else if (input.timer === 'avoid') this.#stopAvoiding()
        else if (this.#isFinalizing) this.#decide(this.#vote)
        return
      case 'oracle':
        this.#oracleAllows = input.canLeadAlone
        return
      case 'established':
        // Servers that join later compare the epoch in which the leader leads, not the one it was elected with.
        if (this.#state !== 'looking') this.#vote = { ...this.#vote, epoch: input.epoch }
        return
      case 'assigned':
        // quorum-protocol 14.5: the vote names the designated leader. Only that server knows its zxid, which a voter that looks compares
        // with its own history. A wrong zxid elects no server: votes of servers with a role count by leader and epoch.
        this.#state = input.state
        this.#vote = { ...this.#vote, leader: input.leader, zxid: input.zxid ?? this.#vote.zxid }
        return
      case 'configured':
        this.#configure(input.configurations)
    }
  }

  /** Starts an election: the next round, with a vote for this server, sent to all voters. */
  #look({ state: own, avoid, withoutVote }: Extract<ElectionInput, { type: 'look' }>): void {
    this.#own = own
    this.#configure(own)
    this.#state = 'looking'
    this.#isRunning = true
    this.#outOfElection.clear()
    this.#inRole.clear()
    this.#looking.clear()
    this.#newerConfigurations.clear()
    this.#warnedAbout.clear()
    this.#vainRounds = 0
    this.#lastVainRound = -1
    this.#stopFinalizing()
    this.#avoided = avoid?.leader
    this.#withoutVote = withoutVote
    if (avoid !== undefined) this.#work.push({ do: 'start', timer: 'avoid', afterMs: avoid.forMs })
    this.#beginRound()
  }

  /** Begins the next round with a vote for this server, sent to all voters. */
  #beginRound(): void {
    this.#received.clear()
    this.#farAhead.clear()
    this.#replies.clear()
    this.#resends = 0
    this.#round = Math.min(this.#round + 1, MAX_ROUND)
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
    this.#proposed = newer && printConfiguration(newer)
    const { zxid, epoch } = this.#own!
    this.#own = { zxid, epoch, active, ...(newer === undefined ? {} : { proposed: newer }) }
  }

  /**
   * Returns the initial vote. A voter votes for itself. An observer votes for no server. A participant that the active configuration
   * does not contain sends its zxid and epoch, without a candidate; but in every second round it votes for itself if a proposed
   * configuration contains it. It may be the only one that has the latest history, and then no other server can lead. Or a voter
   * that is needed may not know the proposed configuration, and never vote for it. A server that was elected in vain is no candidate in
   * every fourth round, in which those are none either: others that do not know the proposed configuration would elect it for ever.
   */
  #ownVote(): Vote {
    const { active, zxid, epoch } = this.#own!
    const { self } = this.#options
    if (this.#isObserver()) return { leader: NO_VALUE, zxid: NO_VALUE, round: this.#round, epoch: NO_VALUE }
    const standsBack = this.#vainRounds >= MAX_VAIN_ROUNDS && this.#round % 4 === 1
    const isCandidate = active.members.has(self)
      ? !standsBack
      : this.#round % 2 === 0 && this.#voters.includes(self)
    return { leader: isCandidate ? self : NO_VALUE, zxid, round: this.#round, epoch }
  }

  #isObserver(): boolean {
    return this.#own!.active.members.get(this.#options.self)?.role === 'observer'
  }

  // Notifications, before they count

  #receive({ from, notification, isAuthenticated = false, isForeign = false }: Received): void {
    if (this.#adoptConfiguration(from, notification, isAuthenticated)) return
    const isLooking = notification.state === 'looking'
    // quorum-protocol 5.2 rule 2: a looking non-voter gets a reply and does not count.
    // quorum-protocol 5.2 rule 5: a server with a role replies to a looking one with its decided vote.
    if (!this.#voters.includes(from) || this.#state !== 'looking')
      return isLooking ? this.#reply(from, notification.vote) : undefined
    // quorum-protocol 5.2 rule 4: a server in an older round gets the vote of this round. So does one of this round with
    // a worse candidate: it may have received this vote while it had a role, and would get it again only after a timeout.
    if (isLooking && this.#isBehind(notification.vote)) this.#reply(from, notification.vote)
    if (isLooking) this.#inRole.delete(from)
    if (isLooking && notification.vote.zxid !== UNTRUSTED_ZXID)
      this.#looking.set(from, { ...notification.vote, isForeign })
    else this.#looking.delete(from)
    if (this.#isRunning) this.#count(from, notification)
  }

  #isBehind(vote: Vote): boolean {
    if (vote.round !== this.#round) return vote.round < this.#round
    return this.#isRunning && vote.zxid !== UNTRUSTED_ZXID && isBetterVote(this.#vote, vote, this.#verifiers!)
  }

  /**
   * Sends the current vote in reply, once for the same received vote until votes are sent to all again: two looking servers
   * whose configurations do not contain each other would reply to each other's replies without end.
   */
  #reply(to: ServerId, heard: Vote): void {
    // quorum-protocol 5.2: voters get the round of the vote, non-voters the logical clock.
    const vote = this.#voters.includes(to) ? this.#vote : { ...this.#vote, round: this.#round }
    const exchange = [heard, vote]
      .map(({ leader, zxid, round, epoch }) => `${leader} ${zxid} ${round} ${epoch}`)
      .join()
    if (this.#isRunning) {
      if (this.#replies.get(to) === exchange) return
      if (this.#replies.size < MAX_REPLIES || this.#replies.has(to)) this.#replies.set(to, exchange)
    }
    this.#send(to, vote)
  }

  /**
   * Adopts a newer configuration while looking (quorum-protocol 5.2 rule 1, 14.7), once a quorum has sent it or an authenticated
   * server has. If members or addresses differ, the election restarts with it; returns whether it does. Without
   * `adoptsConfigurations` each server keeps its own configuration: static files may differ while an operator edits them one by
   * one, and that must not prevent an election.
   */
  #adoptConfiguration(from: ServerId, { configuration }: Notification, isAuthenticated: boolean): boolean {
    if (!this.#isRunning || configuration === undefined || configuration === this.#configuration) return false
    // The text of another server cannot count, and is not parsed: anyone may send one where servers may join.
    if (!isAuthenticated && !this.#voters.includes(from)) return false
    const received = this.#readConfiguration(from, configuration)
    const own = this.#own!
    if (received === undefined) return false
    const restart = !sameMembership(received, own.active)
    if (!this.#options.adoptsConfigurations) {
      const message =
        'The configuration of another server has different members; each server uses its own configuration'
      if (restart) this.#warnOnce(from, { version: received.version }, message)
      return false
    }
    if (received.version <= own.active.version) return false
    if (!isAuthenticated && !this.#isConfirmed(from, received, configuration)) return false
    if (restart) {
      this.#isRunning = false
      this.#stopTimers()
    } else this.#configure({ ...own, active: received })
    this.#work.push({ do: 'configure', configuration: received, from, restart })
    return restart
  }

  /**
   * Records a newer configuration and returns whether a quorum of the voters of the active one has sent it, or of the one that
   * this server has logged: a single sender must not replace the members. The logged one counts since it may be in force
   * already, without enough of the old voters. A server without data, whose configuration an operator has written, counts
   * itself: the operator may have listed only some of the members for it. It does not where it would be a quorum alone: an
   * ensemble that has changed its members has data, so none of its quorums is without, and this server would lead an empty one.
   */
  #isConfirmed(from: ServerId, received: EnsembleConfiguration, text: string): boolean {
    const { active, zxid } = this.#own!
    this.#newerConfigurations.set(from, text)
    const senders = new Set<ServerId>()
    for (const [id, sent] of this.#newerConfigurations) if (sent === text) senders.add(id)
    const { self } = this.#options
    const isNew = active.version === 0 && zxid <= 0
    if (isNew && !verifierOf(received).isQuorum(new Set([self]))) senders.add(self)
    if (verifierOf(active).isQuorum(senders) || this.#verifiers!.proposed?.isQuorum(senders)) return true
    const message =
      'The configuration sent by another server is newer. It is adopted when a quorum of the voters known here sends it; if too few of them are left, copy the dynamic configuration file of a member to this server'
    this.#warnOnce(from, { version: received.version, sentBy: [...senders] }, message)
    return false
  }

  #readConfiguration(from: ServerId, text: string): EnsembleConfiguration | undefined {
    const message = 'The configuration sent by another server is invalid; its vote counts nevertheless'
    if (text.length > MAX_CONFIGURATION) {
      const reason = `expected at most ${MAX_CONFIGURATION} characters, got ${text.length}`
      this.#warnOnce(from, { reason }, message)
      return undefined
    }
    try {
      return parseConfiguration(text)
    } catch (error) {
      if (!(error instanceof ConfigurationError)) throw error
      this.#warnOnce(from, { reason: error.message }, message)
      return undefined
    }
  }

  /** Warns once per server and election. */
  #warnOnce(from: ServerId, context: object, message: string): void {
    if (this.#warnedAbout.has(from)) return
    this.#warnedAbout.add(from)
    this.#work.push({ do: 'warn', context: { from, ...context }, message })
  }

  // Counting votes

  #count(from: ServerId, notification: Notification): void {
    // Only voters can be elected.
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
   * Returns whether a vote ends the wait for a better one. Until then nothing but a better vote counts, except that further
   * equal votes can shorten the wait.
   */
  #interruptsFinalizing(from: ServerId, { state, vote }: Notification): boolean {
    if (state === 'looking' && vote.round !== this.#round && !this.#isRoundToEnter(from, vote.round))
      return false
    if (!isBetterVote(vote, this.#vote, this.#verifiers!)) {
      const received: ReceivedVote = { ...vote, state, version: 0 }
      if (state !== 'looking' || !isSameVote(received, this.#proposal())) return false
      this.#received.set(from, received)
      this.#finalizeEarly()
      return false
    }
    this.#stopFinalizing()
    this.#startResendTimer()
    return true
  }

  #countLooking(from: ServerId, vote: Vote): void {
    // A server that does not trust its data must not take part in choosing a leader, whether this one or the sender.
    if (this.#own!.zxid === UNTRUSTED_ZXID || vote.zxid === UNTRUSTED_ZXID) return
    if (vote.round !== this.#round) {
      if (!this.#isRoundToEnter(from, vote.round)) return
      // Votes of other rounds are void.
      this.#round = vote.round
      this.#received.clear()
      this.#farAhead.clear()
      const own = this.#ownVote()
      this.#changeVote(isBetterVote(vote, own, this.#verifiers!) ? vote : own)
    } else if (isBetterVote(vote, this.#vote, this.#verifiers!)) {
      this.#changeVote(vote)
    }
    this.#received.set(from, { ...vote, state: 'looking', version: 0 })
    this.#checkQuorum()
  }

  /**
   * Returns whether a looking server moves to the round of a voter: to a later one, unless that is far ahead and no quorum has
   * sent rounds like it; and to one far behind, since the voter does not follow this server so far.
   */
  #isRoundToEnter(from: ServerId, round: number): boolean {
    const distance = round - this.#round
    if (distance < 0) return distance < -MAX_ROUND_JUMP
    if (distance <= MAX_ROUND_JUMP) return true
    return isQuorumOfAll(this.#verifiers!, this.#farAhead.add(from))
  }

  /**
   * Adopts a vote and sends it to all. Restarts the notification interval from its minimum: the candidate will soon have a
   * role, and replies with it to the next notification of this server.
   */
  #changeVote({ leader, zxid, epoch }: Vote): void {
    this.#vote = { leader, zxid, round: this.#round, epoch }
    this.#resends = 0
    this.#broadcast()
    if (this.#notificationIntervalMs === this.#options.minNotificationIntervalMs) return
    this.#notificationIntervalMs = this.#options.minNotificationIntervalMs
    this.#startResendTimer()
  }

  /** Starts the wait for a better vote once a quorum has the vote of this server. */
  #checkQuorum(): void {
    if (this.#isFinalizing) return
    if (!hasQuorum(this.#received, this.#proposal(), this.#verifiers!)) return this.#noteVainRound()
    this.#isFinalizing = true
    this.#work.push({ do: 'stop', timer: 'resend' })
    this.#work.push({ do: 'start', timer: 'finalize', afterMs: this.#options.finalizeWaitMs })
    this.#finalizeEarly()
  }

  /** Notes that the voters of the active configuration have elected this server, which the proposed one keeps from leading. */
  #noteVainRound(): void {
    const { active, proposed } = this.#verifiers!
    if (proposed === undefined || this.#vote.leader !== this.#options.self) return
    if (this.#lastVainRound === this.#round) return
    if (!hasQuorum(this.#received, this.#proposal(), { active })) return
    this.#lastVainRound = this.#round
    if (++this.#vainRounds !== MAX_VAIN_ROUNDS) return
    const message =
      'This server cannot lead: a change of the members that it has seen needs members that are not there. It lets others lead; the change is then lost, unless a quorum has it'
    this.#work.push({ do: 'warn', context: { version: formatZxid(this.#own!.proposed!.version) }, message })
  }

  /**
   * Decides before the end of the wait when every other voter has sent the same vote or is unreachable. An unreachable voter
   * that returns later finds a leader, as it would after the wait.
   */
  #finalizeEarly(): void {
    const proposal = this.#proposal()
    const agrees = (id: ServerId): boolean => {
      const received = this.#received.get(id)
      return received !== undefined && isSameVote(received, proposal)
    }
    if (this.#others().every((id) => this.#unreachable.has(id) || agrees(id))) this.#decide(this.#vote)
  }

  #setReachable(to: ServerId, isReachable: boolean): void {
    if (isReachable) this.#unreachable.delete(to)
    else if (this.#voters.includes(to)) this.#unreachable.add(to)
    if (this.#isFinalizing) this.#finalizeEarly()
  }

  #proposal(): ReceivedVote {
    return { ...this.#vote, state: 'looking', version: 0 }
  }

  #countDecided(from: ServerId, { state, vote, version, configuration }: Notification): void {
    const received: ReceivedVote = { ...vote, state, version }
    // The sender may have decided in this round, perhaps with the vote of this server. Stored without a version, so that the
    // epoch, which the leader may have raised since, does not separate votes of one round.
    if (vote.round === this.#round) {
      this.#received.set(from, { ...received, version: 0 })
      if (this.#isEstablishedLeader(this.#received, received)) return this.#join(vote)
    }
    // A server joins an established leader of any round, even if a better vote is known.
    this.#outOfElection.set(from, received)
    if (this.#isEstablishedLeader(this.#outOfElection, received)) return this.#join(vote)
    const hasProposed = state === 'leading' && configuration !== undefined && configuration === this.#proposed
    if (state === 'leading' && configuration !== this.#configuration && !hasProposed)
      this.#inRole.delete(from)
    else this.#inRole.set(from, received)
    if (this.#isNeededBy(received, hasProposed)) return this.#join(vote)
    // quorum-protocol 2.5: one of two servers leads alone because its oracle allows it. Unless the oracle of this server
    // allows the same, it joins.
    if (state === 'leading' && this.#verifiers!.active.canAskOracle && !this.#oracleAllows) this.#join(vote)
  }

  /** Joins an established leader, in the round of its election, unless the leader is avoided. */
  #join(vote: Vote): void {
    if (vote.leader === this.#avoided) return
    if (Math.abs(vote.round - this.#round) <= MAX_ROUND_JUMP) this.#round = vote.round
    this.#decide(vote)
  }

  /** Ends the time in which a leader is avoided: asks all servers for their votes again. */
  #stopAvoiding(): void {
    this.#avoided = undefined
    this.#outOfElection.clear()
    this.#inRole.clear()
    this.#replies.clear()
    this.#broadcast()
  }

  /**
   * Returns whether a quorum follows the leader of a vote and that leader leads. Another server leads by a quorum of the
   * active configuration: its voters may not know a proposed one that only this server has logged. This server itself leads
   * by a quorum of both.
   */
  #isEstablishedLeader(votes: ReceivedVotes, vote: ReceivedVote): boolean {
    const { self } = this.#options
    const { active } = this.#verifiers!
    const verifiers = vote.leader === self ? this.#verifiers! : { active }
    return hasQuorum(votes, vote, verifiers) && isConfirmedLeader(votes, vote, self, this.#round)
  }

  /**
   * Returns whether the leader of a vote leads, and has a quorum once this server follows it too. A voter may have changed its vote
   * after another server was elected with it, or may not have reached that one in time. Where neither those that follow nor those that
   * look are a quorum, the two groups would otherwise elect leaders in turns, each when the other one gives up, and none would get its
   * quorum. It is safe since following a leader elects none: the leader still needs the promises of a quorum for its epoch. One that
   * would refuse this server, or with which it has no vote, does not need it.
   *
   * This server joins a leader without followers at once only where that leader has in force the configuration that this server has
   * logged: such a leader elects no candidate that this configuration does not name, while this server may prefer one.
   */
  #isNeededBy(vote: ReceivedVote, hasProposed: boolean): boolean {
    const { self } = this.#options
    if (vote.leader === self || this.#own!.zxid === UNTRUSTED_ZXID || isAhead(this.#own!, vote)) return false
    // Leaders that refuse a server in turns would otherwise be joined without end.
    if (this.#avoided !== undefined || isOfTerm(vote, this.#withoutVote)) return false
    if (!isConfirmedLeader(this.#inRole, vote, self, this.#round)) return false
    const followers = supportersOf(this.#inRole, vote).add(self)
    const fewest = hasProposed ? 2 : 3
    if (followers.size >= fewest && this.#verifiers!.active.isQuorum(followers)) return true
    return this.#isNeededWithOthers(vote, followers)
  }

  /**
   * Returns whether the leader of a vote has a quorum once its followers, this server among them, and the voters that look follow it: for
   * example two of four voters that did not reach it in time, while another one is down. Those that look first have an interval to elect
   * one of themselves, since the leader may be out of reach. Members of Apache ZooKeeper and voters with a later history do not join such a
   * leader. A wrong guess is safe: the leader gives up as it would without this server.
   */
  #isNeededWithOthers(vote: ReceivedVote, followers: ReadonlySet<ServerId>): boolean {
    const { self } = this.#options
    const { active } = this.#verifiers!
    if (this.#resends === 0 || active.weightOf(self) === 0) return false
    const looking = [...this.#looking].filter(([id]) => !this.#unreachable.has(id))
    if (isQuorumOfAll(this.#verifiers!, new Set(looking.map(([id]) => id)).add(self))) return false
    const joining = looking.filter(([, other]) => !other.isForeign && !isAhead(other, vote))
    return active.isQuorum(new Set([...followers, ...joining.map(([id]) => id)]))
  }

  /** Sends the vote to all again and doubles the notification interval. */
  #resend(): void {
    if (this.#isFinalizing) return
    this.#notificationIntervalMs = Math.min(
      this.#notificationIntervalMs * 2,
      this.#options.maxNotificationIntervalMs,
    )
    this.#work.push({ do: 'connect', to: this.#others() })
    this.#resends++
    if (this.#hasHopelessVote()) return this.#beginRound()
    this.#replies.clear()
    this.#broadcast()
    this.#startResendTimer()
    this.#checkQuorum()
    // quorum-protocol 2.5: one of two servers decides alone if the oracle allows it, after the other one had an interval of
    // time to send its vote.
    const hasCandidate = this.#vote.leader !== NO_VALUE
    const canDecideAlone = hasCandidate && this.#verifiers!.active.canAskOracle && this.#oracleAllows
    if (!this.#isFinalizing && canDecideAlone && this.#received.has(this.#options.self))
      this.#decide(this.#vote)
  }

  /**
   * Returns whether this server has voted for another one for long, and no quorum agrees. The false vote of a program that has claimed
   * the id of a voter could hold this server in a round for ever: the server that it names may not be a voter for others, nor vote
   * for itself.
   */
  #hasHopelessVote(): boolean {
    const { self } = this.#options
    return this.#resends >= MAX_RESENDS && this.#vote.leader !== self && this.#voters.includes(self)
  }

  /** Ends the election with the role that follows from the vote. */
  #decide(vote: Vote): void {
    this.#isRunning = false
    this.#stopTimers()
    this.#vote = vote
    const following = this.#isObserver() ? 'observing' : 'following'
    this.#state = vote.leader === this.#options.self ? 'leading' : following
    this.#work.push({ do: 'decide', state: this.#state, vote })
  }

  // Sending

  /** Sends the vote to every other voter, and counts it here if this server is a voter. */
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
    if (this.#isFinalizing) this.#work.push({ do: 'stop', timer: 'finalize' })
    this.#isFinalizing = false
  }

  #stopTimers(): void {
    this.#stopFinalizing()
    this.#work.push({ do: 'stop', timer: 'resend' })
    if (this.#avoided !== undefined) this.#work.push({ do: 'stop', timer: 'avoid' })
  }
}
