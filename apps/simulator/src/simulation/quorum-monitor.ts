import { formatZxid } from '../history/records.ts'
import type { HostState, SimulatedConnection, SimulatedWorld } from '@zabra/testing'
import { OpCode } from '@zabra/protocol'
import { DurableLog } from './durable-log.ts'
import { ConfigurationHistory, readMembers, type VoterSet } from './membership.ts'
import type { OracleFile } from './oracle-file.ts'
import { OBSERVER_PORT, ObserverMonitor } from './observer-monitor.ts'
import { PacketType, QuorumPacketParser, type QuorumPacket } from './quorum-packet-parser.ts'
import { Repetitions, WINDOW_MS } from './repetitions.ts'

export const QUORUM_PORT = 2888
/** How often a learner that is refused joins the same leader in `WINDOW_MS`, at most: each time it waits for longer. */
const MAX_REFUSED_JOINS = 20

const isServer = ({ name }: HostState): boolean => /^s\d+$/.test(name)

/** What servers sent each other. */
export interface QuorumRecord {
  /** Zxids that an established leader has announced as committed. */
  readonly committed: ReadonlySet<number>
  /** Packets that violate the protocol. */
  readonly violations: readonly string[]
}

/** The packets from a leader to one learner. */
interface LearnerChannel {
  readonly leader: HostState
  readonly learner: HostState
  lastProposal: number
  lastInform: number
  /** Commits before UPTODATE: they count once the leader is established. */
  early: number[]
  readonly proposed: Set<number>
  upToDate: boolean
  /** The epoch that the learner was offered. */
  offered: number
  /** The epoch of the leader's NEWLEADER. */
  epoch: number
}

/**
 * Reads the traffic on the quorum port of every server and checks it against the rules of the protocol and the durable
 * state of the disks.
 */
export class QuorumMonitor {
  readonly committed = new Set<number>()
  readonly violations: string[] = []
  readonly record: QuorumRecord = { committed: this.committed, violations: this.violations }
  readonly counts: Record<string, number> = {}
  readonly configurations: ConfigurationHistory
  leader: HostState | undefined
  /** The learners whose connections break when they have accepted the epoch. */
  readonly refused = new Set<HostState>()
  readonly #refusedJoins = new Repetitions()
  /** Called with each zxid that an established leader announces as committed. */
  onCommit: (zxid: number) => void = () => {}
  /** Callbacks for the next proposed reconfiguration. */
  #onChange: ((leader: HostState) => void)[] = []
  /** Called once, with the next transaction to a chosen successor. */
  #onTransfer: ((leader: HostState, successor: HostState) => void) | undefined
  #epoch = 0
  readonly #establishedEpochs = new Set<number>()
  /** The version of the configuration with which the leader of an epoch began. */
  readonly #shown = new Map<number, number>()
  readonly #world: SimulatedWorld
  readonly #oracle: OracleFile | undefined
  readonly #streams = new Map<SimulatedConnection, QuorumPacketParser>()
  /** The epoch offered to a learner, by the learner's side of the connection. */
  readonly #offered = new WeakMap<SimulatedConnection, number>()
  readonly #leaders = new Map<number, HostState>()
  readonly #logs = new Map<HostState, DurableLog>()
  /** The last zxid of each leader's history, as the leader announced it. */
  readonly #reach = new Map<HostState, number>()

  /** `voters` are the initial ones. Server hosts are named `s` and a number. */
  constructor(world: SimulatedWorld, voters: VoterSet, oracle?: OracleFile) {
    this.#world = world
    this.#oracle = oracle
    this.configurations = new ConfigurationHistory(voters)
    world.network.tap = (from, bytes) => this.#receive(from, bytes)
  }

  /** Calls back once, when a leader proposes a reconfiguration that is new. */
  onNextReconfig(proposed: (leader: HostState) => void): void {
    this.#onChange.push(proposed)
  }

  /** Calls back once, when a leader sends a chosen successor one transaction more than the others; replaces an earlier callback. */
  onNextTransfer(sent: (leader: HostState, successor: HostState) => void): void {
    this.#onTransfer = sent
  }

  #receive(from: SimulatedConnection, bytes: Uint8Array): void {
    const port = from.isInitiator ? from.remote.port : from.local.port
    if (port !== QUORUM_PORT && port !== OBSERVER_PORT) return
    let stream = this.#streams.get(from)
    if (stream === undefined) {
      // What strangers receive and send is no part of the protocol.
      if (!isServer(from.owner.host) || !isServer(from.remoteEnd.owner.host)) return
      const [own, other] = [from.owner.host, from.remoteEnd.owner.host]
      stream = from.isInitiator
        ? new QuorumPacketParser((packet) => this.#fromLearner(own, packet, from))
        : this.#parserToLearner(port, own, other, from.remoteEnd)
      this.#streams.set(from, stream)
    }
    if (stream.isBroken) return
    stream.push(bytes)
    // Nothing behind it would be checked.
    if (stream.isBroken)
      this.#report(`${from.owner.host.name} sent ${from.remoteEnd.owner.host.name} what is no packet`)
  }

  #parserToLearner(
    port: number,
    master: HostState,
    learner: HostState,
    answers: SimulatedConnection,
  ): QuorumPacketParser {
    const receive =
      port === OBSERVER_PORT ? this.#observerChannel(master, learner) : this.#channel(master, learner)
    return new QuorumPacketParser((packet) => {
      if (packet.type === PacketType.LEADERINFO) this.#offered.set(answers, packet.zxid / 2 ** 32)
      if (packet.type === PacketType.NEWLEADER) this.#checkConfiguration(master, learner, packet)
      receive(packet)
    })
  }

  /** Monitors what an observer receives from its follower. */
  #observerChannel(master: HostState, learner: HostState): (packet: QuorumPacket) => void {
    const { committed } = this
    const parts = {
      committed,
      count: (name: string) => this.#count(name),
      report: (what: string) => this.#report(what),
    }
    const channel = new ObserverMonitor(parts, master, learner)
    return (packet) => channel.receive(packet)
  }

  #channel(leader: HostState, learner: HostState): (packet: QuorumPacket) => void {
    const channel: LearnerChannel = {
      leader,
      learner,
      lastProposal: 0,
      lastInform: 0,
      early: [],
      proposed: new Set(),
      upToDate: false,
      offered: 0,
      epoch: 0,
    }
    return (packet) => this.#fromLeader(channel, packet)
  }

  /** Records the durable state of a disk that is about to be replaced. */
  diskReplaced(host: HostState): void {
    this.#logOf(host).retainHistory()
  }

  #fromLeader(channel: LearnerChannel, { type, zxid, data }: QuorumPacket): void {
    switch (type) {
      case PacketType.LEADERINFO:
        channel.offered = zxid / 2 ** 32
        return
      case PacketType.NEWLEADER:
        return this.#newLeader(channel, zxid / 2 ** 32)
      case PacketType.UPTODATE:
        channel.upToDate = true
        this.#established(channel)
        for (const early of channel.early) this.#commit(early)
        return this.#count('learners synced')
      case PacketType.DIFF:
        return this.#recordReach(channel, 'DIFF', zxid)
      case PacketType.TRUNC:
        return this.#count('TRUNC')
      case PacketType.SNAP:
        return this.#recordReach(channel, 'SNAP', zxid)
      case PacketType.PROPOSAL:
        if (zxid <= channel.lastProposal)
          this.#reportFor(channel, `proposed ${formatZxid(zxid)} after ${formatZxid(channel.lastProposal)}`)
        channel.lastProposal = zxid
        channel.proposed.add(zxid)
        if (data !== undefined && isOfTransfer(data)) this.#sentAhead(channel)
        return this.#proposed(channel.leader, zxid, data)
      case PacketType.COMMIT:
      case PacketType.COMMITANDACTIVATE:
        if (!channel.proposed.delete(zxid))
          this.#reportFor(channel, `committed ${formatZxid(zxid)}, which it had not proposed`)
        // A learner applies it at once, also a reconfiguration that no other learner has received.
        if (channel.upToDate || this.#establishedEpochs.has(channel.offered)) this.#checkCommit(channel, zxid)
        else channel.early.push(zxid)
        if (type === PacketType.COMMITANDACTIVATE) this.#count('reconfigurations')
        return
      case PacketType.INFORM:
      case PacketType.INFORMANDACTIVATE:
        if (zxid <= channel.lastInform)
          this.#reportFor(channel, `informed of ${formatZxid(zxid)} after ${formatZxid(channel.lastInform)}`)
        channel.lastInform = zxid
        if (channel.upToDate) this.#checkCommit(channel, zxid)
        return
      default:
    }
  }

  /** Checks a configuration that a learner activates: once its leader is established, it must be committed. */
  #checkConfiguration(master: HostState, learner: HostState, { zxid, data }: QuorumPacket): void {
    const epoch = zxid / 2 ** 32
    if (data === undefined) return
    const { version } = readMembers(new TextDecoder().decode(data))
    if (!this.#establishedEpochs.has(epoch)) return void this.#shown.set(epoch, version)
    if (!this.configurations.isPending(version) || this.#isOnDisks(version)) return
    this.#report(
      `${master.name} gave ${learner.name} the configuration ${formatZxid(version)}, which is not committed`,
    )
  }

  #proposed(leader: HostState, zxid: number, data: Uint8Array | undefined): void {
    const text = data === undefined ? undefined : configurationIn(data)
    if (text === undefined) return
    if (!this.configurations.propose(zxid, text)) return
    for (const receive of this.#onChange.splice(0)) receive(leader)
  }

  #sentAhead({ leader, learner, upToDate }: LearnerChannel): void {
    if (!upToDate) return
    this.#count('transactions for successors')
    const receive = this.#onTransfer
    this.#onTransfer = undefined
    receive?.(leader, learner)
  }

  #commit(zxid: number): void {
    this.committed.add(zxid)
    this.onCommit(zxid)
    this.configurations.commit(zxid)
  }

  /**
   * Checks a commit: a quorum must have the transaction on disk; for a reconfiguration, quorums of the old and the new
   * voters.
   */
  #checkCommit({ leader }: LearnerChannel, zxid: number): void {
    if (this.committed.has(zxid)) return
    for (const one of this.configurations.decidingVoters(zxid))
      if (!this.isDecided(one, zxid, (id) => this.#everHad(id, zxid)))
        this.#report(
          `${leader.name} committed ${formatZxid(zxid)}, which is not on the disks of a quorum of ${[...one.voters].join(', ')}`,
        )
    this.#commit(zxid)
  }

  /** Records how far the leader's history goes. */
  #recordReach(channel: LearnerChannel, how: string, zxid: number): void {
    const { leader, offered } = channel
    this.#count(how)
    this.#reach.set(leader, zxid)
    if (!this.#establishedEpochs.has(offered)) return
    // Some of these may have been committed without any learner to announce them to.
    for (const known of this.#logOf(leader).zxids())
      if (known > offered * 2 ** 32 && known <= zxid) this.#checkCommit(channel, known)
  }

  /**
   * With the first learner that is up to date everything that the leader began with is committed: what its log holds,
   * what only its snapshot holds of its last epoch, and the last configuration it had seen, whose reconfiguration its
   * log may have lost. That takes quorums of the old and the new configuration.
   */
  #established({ leader, epoch }: LearnerChannel): void {
    // A leader that has lost its quorum unknowingly still brings observers up to date with its initial history.
    if (this.#establishedEpochs.has(epoch)) return
    this.#establishedEpochs.add(epoch)
    const reach = this.#reach.get(leader) ?? 0
    for (let zxid = reach; zxid % 2 ** 32 > 0; zxid--) this.#commit(zxid)
    for (const zxid of this.#logOf(leader).zxids()) if (zxid < epoch * 2 ** 32) this.#commit(zxid)
    const before = this.configurations.decidingVoters(epoch * 2 ** 32)
    this.configurations.commit(this.#shown.get(epoch) ?? -1)
    if (epoch < this.#epoch) return
    const hasEpoch = (id: number): boolean => (this.#diskOf(id)?.highestEpochIn('currentEpoch') ?? 0) >= epoch
    for (const one of new Set([...before, ...this.configurations.decidingVoters(epoch * 2 ** 32)]))
      if (!this.isDecided(one, epoch * 2 ** 32, hasEpoch))
        this.#report(
          `${leader.name} leads epoch ${epoch}, which is not on the disks of a quorum of ${[...one.voters].join(', ')}`,
        )
  }

  /**
   * Returns whether the deciding quorums have a transaction on disk, so that its leader may have committed it
   * unannounced.
   */
  #isOnDisks(zxid: number): boolean {
    const deciders = this.configurations.decidingVoters(zxid)
    return deciders.every((one) => this.isDecided(one, zxid, (id) => this.#everHad(id, zxid)))
  }

  /** Returns whether the servers with `has` decide about a transaction: a quorum, or the one that the oracle lets lead alone. */
  isDecided({ isQuorum }: VoterSet, zxid: number, has: (id: number) => boolean): boolean {
    return isQuorum(has) || (this.#oracle?.decides(zxid) === true && has(this.#oracle.survivor.id))
  }

  #everHad(id: number, zxid: number): boolean {
    return this.#diskOf(id)?.everHad(zxid) === true
  }

  #diskOf(id: number): DurableLog | undefined {
    const host = this.#world.hosts.find(({ name }) => name === `s${id}`)
    return host === undefined ? undefined : this.#logOf(host)
  }

  #newLeader(channel: LearnerChannel, epoch: number): void {
    const { leader } = channel
    channel.epoch = epoch
    const before = this.#leaders.get(epoch)
    if (before === undefined) {
      this.#count('elections')
      this.#leaders.set(epoch, leader)
    } else if (before !== leader)
      this.#report(`${leader.name} leads epoch ${epoch}, and so does ${before.name}`)
    this.leader = leader
    this.#epoch = Math.max(this.#epoch, epoch)
    const log = this.#logOf(leader)
    if (log.epochIn('acceptedEpoch') < epoch)
      this.#report(
        `${leader.name} says NEWLEADER of epoch ${epoch} with accepted epoch ${log.epochIn('acceptedEpoch')} on its disk`,
      )
  }

  #fromLearner(learner: HostState, { type, zxid }: QuorumPacket, from: SimulatedConnection): void {
    const log = this.#logOf(learner)
    const offered = this.#offered.get(from) ?? 0
    if (type === PacketType.ACKEPOCH && log.epochIn('acceptedEpoch') < offered)
      this.#report(
        `${learner.name} promised epoch ${offered} with accepted epoch ${log.epochIn('acceptedEpoch')} on its disk`,
      )
    if (type === PacketType.ACKEPOCH && this.refused.has(learner)) this.#refuse(learner, from)
    if (type !== PacketType.ACK) return
    if (zxid % 2 ** 32 === 0) {
      if (log.epochIn('currentEpoch') < zxid / 2 ** 32)
        this.#report(
          `${learner.name} acknowledged the leader of epoch ${zxid / 2 ** 32} with current epoch ${log.epochIn('currentEpoch')} on its disk`,
        )
    } else if (!log.has(zxid))
      this.#report(`${learner.name} acknowledged ${formatZxid(zxid)}, which its disk may still lose`)
  }

  #refuse(learner: HostState, connection: SimulatedConnection): void {
    this.#count('learners refused')
    const leader = connection.remoteEnd.owner.host
    const joins = this.#refusedJoins.add(`${learner.name} ${leader.name}`, this.#world.now)
    if (joins === MAX_REFUSED_JOINS + 1)
      this.#report(
        `${learner.name} joined ${leader.name} ${joins} times in ${WINDOW_MS / 1000} s, and was refused each time`,
      )
    this.#world.schedule(0, undefined, 'refusal', () => {
      for (const end of [connection, connection.remoteEnd]) end.breakWith('ECONNRESET')
    })
  }

  #logOf(host: HostState): DurableLog {
    let log = this.#logs.get(host)
    if (log === undefined) this.#logs.set(host, (log = new DurableLog(host.disk)))
    return log
  }

  #count(name: string): void {
    this.counts[name] = (this.counts[name] ?? 0) + 1
  }

  #reportFor({ leader, learner }: LearnerChannel, what: string): void {
    this.#report(`${leader.name} to ${learner.name}: ${what}`)
  }

  #report(what: string): void {
    if (this.violations.length < 100) this.violations.push(`${what} (at ${this.#world.now.toFixed(1)} ms)`)
  }
}

/** Whether a transaction is the one for a chosen successor: a failed request without a session, whose type is -1. */
function isOfTransfer(txn: Uint8Array): boolean {
  const view = new DataView(txn.buffer, txn.byteOffset, txn.byteLength)
  return txn.length === 36 && view.getBigInt64(0) === 0n && view.getInt32(28) === OpCode.error
}

/** Returns the text of the configuration that a transaction proposes. The type follows session, cxid, zxid and time. */
function configurationIn(txn: Uint8Array): string | undefined {
  const view = new DataView(txn.buffer, txn.byteOffset, txn.byteLength)
  if (txn.length < 40 || view.getInt32(28) !== OpCode.reconfig) return undefined
  const at = 36 + view.getInt32(32)
  return new TextDecoder().decode(txn.subarray(at + 4, at + 4 + view.getInt32(at)))
}
