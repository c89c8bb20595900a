import {
  parseConfiguration,
  printConfiguration,
  sameMembership,
  verifierOf,
  votersOfAll,
  ConfigurationError,
  type EnsembleConfiguration,
  type Quorums,
  type ServerId,
} from '../quorum/index.ts'
import type { Notification } from './notification.ts'
import type { Configurations, ElectionInput, ElectionSettings, ElectionWork, Footing } from './types.ts'
import {
  doesLead,
  isBetter,
  isSupported,
  matches,
  NOBODY,
  UNTRUSTED,
  type Ballot,
  type Ballots,
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
  readonly #settings: ElectionSettings
  #state: PeerState = 'looking'
  /** Looks for a leader, and has not been told of a newer configuration meanwhile. */
  #running = false
  #settling = false
  #footing: Footing | undefined
  #quorums: Quorums | undefined
  #voters: readonly ServerId[] = []
  #configuration = ''
  /** E1 Counts elections; in memory only. */
  #round = 0
  #vote: Vote = { leader: NOBODY, zxid: NOBODY, round: 0, epoch: NOBODY }
  /** Ballots of this round. */
  readonly #ballots = new Map<ServerId, Ballot>()
  /** Ballots of those who have a role, of whatever round. */
  readonly #outside = new Map<ServerId, Ballot>()
  #resendMs: number
  #oracleSaysGo = false
  /** What was answered to what since votes were last sent, by server. */
  readonly #answered = new Map<ServerId, string>()
  /** Servers that have hung up and not come back. One that was never there may be about to start, and is waited for. */
  readonly #unreachable = new Set<ServerId>()
  /** Servers whose configuration was complained of in this election. */
  readonly #strange = new Set<ServerId>()
  #work: ElectionWork[] = []

  constructor(settings: ElectionSettings) {
    this.#settings = settings
    this.#resendMs = settings.minResendMs
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
    if (input.type === 'reach') this.#reach(input.to, input.reachable)
    else if (input.type === 'look') this.#look(input.footing)
    else if (this.#footing !== undefined) this.#take(input)
    return this.#work
  }

  #take(input: Exclude<ElectionInput, { type: 'look' | 'reach' }>): void {
    switch (input.type) {
      case 'heard':
        if (input.from !== this.#settings.self) this.#heard(input.from, input.notification)
        return
      case 'timeout':
        if (!this.#running) return
        if (input.timer === 'resend') this.#resend()
        else if (this.#settling) this.#decide(this.#vote)
        return
      case 'oracle':
        this.#oracleSaysGo = input.goOn
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
  #look(footing: Footing): void {
    this.#footing = footing
    this.#configure(footing)
    this.#state = 'looking'
    this.#running = true
    this.#ballots.clear()
    this.#outside.clear()
    this.#answered.clear()
    this.#strange.clear()
    this.#stopSettling()
    this.#round++
    this.#resendMs = this.#settings.minResendMs
    this.#vote = this.#ownVote()
    this.#broadcast()
    this.#startResending()
    this.#judge()
  }

  #configure({ active, proposed }: Configurations): void {
    const newer = proposed !== undefined && proposed.version > active.version ? proposed : undefined
    const { oracle } = this.#settings
    this.#quorums = {
      active: verifierOf(active, { oracle }),
      ...(newer === undefined ? {} : { proposed: verifierOf(newer) }),
    }
    this.#voters = votersOfAll(this.#quorums)
    this.#configuration = printConfiguration(active)
    const { zxid, epoch } = this.#footing!
    this.#footing = { zxid, epoch, active, ...(newer === undefined ? {} : { proposed: newer }) }
  }

  /**
   * E4 A voter votes for itself. An observer has no candidate at all. A participant that the configuration does
   * not name yet shows what it has, but nobody can follow it.
   */
  #ownVote(): Vote {
    const { active, zxid, epoch } = this.#footing!
    const { self } = this.#settings
    if (this.#isObserver()) return { leader: NOBODY, zxid: NOBODY, round: this.#round, epoch: NOBODY }
    const leader = active.members.has(self) ? self : NOBODY
    return { leader, zxid, round: this.#round, epoch }
  }

  #isObserver(): boolean {
    return this.#footing!.active.members.get(this.#settings.self)?.role === 'observer'
  }

  // What comes in, before it counts for the election

  #heard(from: ServerId, notification: Notification): void {
    if (this.#replacesConfiguration(from, notification)) return
    // E6 (5.2 rule 2) Who has no voice is told how things stand while it looks, and has no influence.
    const looks = notification.state === 'looking'
    if (!this.#voters.includes(from)) return looks ? this.#answer(from, notification.vote) : undefined
    if (this.#state !== 'looking') {
      // E7 (5.2 rule 5) Who looks is told whom I follow, with the round of that vote.
      return looks ? this.#answer(from, notification.vote) : undefined
    }
    // E8 (5.2 rule 4) Who is in an older round is told of mine. So is, of my round, who has a worse candidate: it may have
    // been told of mine while it still had a role, and would hear of it again only when votes are repeated.
    if (looks && this.#isBehind(notification.vote)) this.#answer(from, notification.vote)
    if (this.#running) this.#count(from, notification)
  }

  #isBehind(vote: Vote): boolean {
    if (vote.round !== this.#round) return vote.round < this.#round
    return this.#running && vote.zxid !== UNTRUSTED && isBetter(this.#vote, vote, this.#quorums!)
  }

  /**
   * E26 Two servers that look, under configurations that do not name each other, would answer each other's answers for
   * ever: the same words get the same answer once, until votes are sent again.
   */
  #answer(to: ServerId, heard: Vote): void {
    // Voters hear the round in which the vote was decided, others the one that is counted here.
    const vote = this.#voters.includes(to) ? this.#vote : { ...this.#vote, round: this.#round }
    const exchange = [heard, vote]
      .map(({ leader, zxid, round, epoch }) => `${leader} ${zxid} ${round} ${epoch}`)
      .join()
    if (this.#running && this.#answered.get(to) === exchange) return
    this.#answered.set(to, exchange)
    this.#send(to, vote)
  }

  /**
   * E5 (5.2 rule 1, 14.7) While looking, a newer configuration is taken over, and if it has other members, or other
   * addresses, the election starts again under it. Where configurations do not change at run time, each server abides by
   * its own: they may differ while files are being edited one after the other, and nobody should be kept from electing.
   */
  #replacesConfiguration(from: ServerId, { configuration }: Notification): boolean {
    if (!this.#running || configuration === undefined || configuration === this.#configuration) return false
    const received = this.#readConfiguration(from, configuration)
    const footing = this.#footing!
    if (received === undefined) return false
    const restart = !sameMembership(received, footing.active)
    if (!this.#settings.adoptsConfigurations) {
      const sentence = 'Another server has other members in its configuration; each goes by its own'
      if (restart) this.#complain(from, { version: received.version }, sentence)
      return false
    }
    if (received.version <= footing.active.version) return false
    if (restart) {
      this.#running = false
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
      this.#complain(from, { reason: error.message }, sentence)
      return undefined
    }
  }

  /** Once per server and election. */
  #complain(from: ServerId, facts: object, sentence: string): void {
    if (this.#strange.has(from)) return
    this.#strange.add(from)
    this.#work.push({ do: 'warn', facts: { from, ...facts }, sentence })
  }

  // Choosing

  #count(from: ServerId, notification: Notification): void {
    // E9 Only voters can be voted for.
    if (!this.#voters.includes(notification.vote.leader)) return
    if (this.#settling && !this.#interrupts(from, notification)) return
    switch (notification.state) {
      case 'looking':
        return this.#countLooking(from, notification.vote)
      case 'following':
      case 'leading':
        return this.#countSettled(from, notification)
      case 'observing':
    }
  }

  /**
   * E10 Once a quorum agrees, nothing but a better vote counts until the wait is over, except that others who agree bring
   * its end nearer (E23).
   */
  #interrupts(from: ServerId, { state, vote }: Notification): boolean {
    if (state === 'looking' && vote.round < this.#round) return false
    if (!isBetter(vote, this.#vote, this.#quorums!)) {
      const ballot: Ballot = { ...vote, state, version: 0 }
      if (state !== 'looking' || !matches(ballot, this.#proposal())) return false
      this.#ballots.set(from, ballot)
      this.#settleEarly()
      return false
    }
    this.#stopSettling()
    this.#startResending()
    return true
  }

  #countLooking(from: ServerId, vote: Vote): void {
    // E11 Data that cannot be trusted must not choose a leader: neither mine nor that of others.
    if (this.#footing!.zxid === UNTRUSTED || vote.zxid === UNTRUSTED) return
    if (vote.round < this.#round) return
    if (vote.round > this.#round) {
      // E12 A later round counts alone: what was said in earlier ones is void.
      this.#round = vote.round
      this.#ballots.clear()
      const own = this.#ownVote()
      this.#change(isBetter(vote, own, this.#quorums!) ? vote : own)
    } else if (isBetter(vote, this.#vote, this.#quorums!)) {
      // E13 A better candidate gets my voice too, and everybody hears of it.
      this.#change(vote)
    }
    this.#ballots.set(from, { ...vote, state: 'looking', version: 0 })
    this.#judge()
  }

  /** E24 Whoever gets my voice soon has a role, and says so to who repeats its vote: that is not left for long. */
  #change({ leader, zxid, epoch }: Vote): void {
    this.#vote = { leader, zxid, round: this.#round, epoch }
    this.#broadcast()
    if (this.#resendMs === this.#settings.minResendMs) return
    this.#resendMs = this.#settings.minResendMs
    this.#startResending()
  }

  /** E14 When a quorum has my vote, a while is left for better ones. */
  #judge(): void {
    if (this.#settling || !isSupported(this.#ballots, this.#proposal(), this.#quorums!)) return
    this.#settling = true
    this.#work.push({ do: 'stop', timer: 'resend' })
    this.#work.push({ do: 'start', timer: 'settle', afterMs: this.#settings.settleMs })
    this.#settleEarly()
  }

  /**
   * E23 Nobody is left to wait for when each voter has given its voice to my candidate, or cannot be heard at all. Whoever
   * comes back later finds a leader, as it would after the wait.
   */
  #settleEarly(): void {
    const proposal = this.#proposal()
    const hasSpoken = (id: ServerId): boolean => {
      const ballot = this.#ballots.get(id)
      return ballot !== undefined && matches(ballot, proposal)
    }
    if (this.#others().every((id) => this.#unreachable.has(id) || hasSpoken(id))) this.#decide(this.#vote)
  }

  #reach(to: ServerId, reachable: boolean): void {
    if (reachable) this.#unreachable.delete(to)
    else this.#unreachable.add(to)
    if (this.#running && this.#settling) this.#settleEarly()
  }

  #proposal(): Ballot {
    return { ...this.#vote, state: 'looking', version: 0 }
  }

  #countSettled(from: ServerId, { state, vote, version }: Notification): void {
    const ballot: Ballot = { ...vote, state, version }
    // E15 Somebody may have decided in my own round already, perhaps with my voice. Kept without version, so that the epoch,
    // which the leader may have raised meanwhile, does not keep votes of one round apart.
    if (vote.round === this.#round) {
      this.#ballots.set(from, { ...ballot, version: 0 })
      if (this.#isEstablished(this.#ballots, ballot)) return this.#decide(vote)
    }
    // E16 An established leader is joined in whatever round it was elected, even with a better vote at hand.
    this.#outside.set(from, ballot)
    if (this.#isEstablished(this.#outside, ballot)) {
      this.#round = vote.round
      return this.#decide(vote)
    }
    // E17 Of two servers one leads by the oracle's word. Unless the oracle says the same of me, I join it.
    if (state === 'leading' && this.#quorums!.active.mayAskOracle && !this.#oracleSaysGo) {
      this.#round = vote.round
      this.#decide(vote)
    }
  }

  /**
   * E25 Whoever else leads does so by the configuration in force: of one that I alone have logged, those whom it would give a
   * voice may know nothing, and whom it would not give one has a voice still. I myself do know of it, and cannot lead without
   * a quorum of both.
   */
  #isEstablished(ballots: Ballots, ballot: Ballot): boolean {
    const { self } = this.#settings
    const { active } = this.#quorums!
    const quorums = ballot.leader === self ? this.#quorums! : { active }
    return isSupported(ballots, ballot, quorums) && doesLead(ballots, ballot, self, this.#round)
  }

  /** E18 After a silence everybody hears my vote again; the next silence may last twice as long. */
  #resend(): void {
    if (this.#settling) return
    this.#resendMs = Math.min(this.#resendMs * 2, this.#settings.maxResendMs)
    this.#answered.clear()
    this.#work.push({ do: 'connect', to: this.#others() })
    this.#broadcast()
    this.#startResending()
    this.#judge()
    // E19 One of two goes on alone when the oracle says so, and not before the other one had time to speak.
    const alone = this.#quorums!.active.mayAskOracle && this.#oracleSaysGo
    if (!this.#settling && alone && this.#ballots.has(this.#settings.self)) this.#decide(this.#vote)
  }

  /** E20 The role follows from the vote; an observer follows without a voice. */
  #decide(vote: Vote): void {
    this.#running = false
    this.#stopTimers()
    this.#vote = vote
    const following = this.#isObserver() ? 'observing' : 'following'
    this.#state = vote.leader === this.#settings.self ? 'leading' : following
    this.#work.push({ do: 'decide', state: this.#state, vote })
  }

  // Going out

  /** E21 Every voter hears my vote, I myself among them if I am one. */
  #broadcast(): void {
    for (const to of this.#others()) this.#send(to, this.#vote)
    const { self } = this.#settings
    if (this.#voters.includes(self) && this.#footing!.zxid !== UNTRUSTED)
      this.#ballots.set(self, this.#proposal())
  }

  #others(): ServerId[] {
    return this.#voters.filter((id) => id !== this.#settings.self)
  }

  #send(to: ServerId, vote: Vote): void {
    this.#work.push({ do: 'send', to, state: this.#state, vote, configuration: this.#configuration })
  }

  #startResending(): void {
    this.#work.push({ do: 'start', timer: 'resend', afterMs: this.#resendMs })
  }

  #stopSettling(): void {
    if (this.#settling) this.#work.push({ do: 'stop', timer: 'settle' })
    this.#settling = false
  }

  #stopTimers(): void {
    this.#stopSettling()
    this.#work.push({ do: 'stop', timer: 'resend' })
  }
}
