import { formatZxid, makeZxid, ProtocolError } from '@zabra/protocol'
import type { Cancel, Connection } from '@zabra/runtime'
import { UNTRUSTED } from '../../core/election/index.ts'
import type { ServerId } from '../../core/quorum/index.ts'
import { LearnerSessions } from '../../core/sessions/index.ts'
import type { Zxid } from '../../core/types.ts'
import {
  decodeRevalidationAnswer,
  encodeRevalidation,
  encodeTouches,
  Learner,
  packetName,
  PacketSplitter,
  PacketType,
  writeForwardedRequest,
  type LearnerInput,
  type LearnerWork,
  type QuorumPacket,
} from '../../core/zab/index.ts'
import type { ClientConnection } from '../connection.ts'
import { LearnerWrites, type LeaderLink } from '../writes/index.ts'
import { activate } from './activation.ts'
import { ClientSide } from './client-side.ts'
import { roleFigures } from './figures.ts'
import { Jobs } from './jobs.ts'
import { Keeper } from './keeper.ts'
import type { MemberKit, Over, Term, TermEvents } from './member-kit.ts'
import { Observers } from './observers.ts'
import { QuorumWire } from './quorum-wire.ts'
import { reach, type Reached } from './reach.ts'
import { Turns } from './turns.ts'

/** Requests and acknowledgements that the leader does not take. */
const MAX_UNSENT_BYTES = 128 << 20
/**
 * The end of a session with very many ephemeral nodes is longer than any request, and has to be read all the same. A leader lets no
 * more than this wait for a learner; nothing is reserved for what has not come.
 */
const MAX_PACKET_BYTES = 128 << 20
/** While so much waits for the disk, nothing more is read from the leader. */
const MAX_PENDING_BYTES = 64 << 20

/**
 * A term as follower or observer: what the machine of a learner (`Learner`) asks for is done here, one thing after the
 * other. The rules of order are those of `keeper.ts`.
 */
export class LearnerTerm implements Term {
  readonly #kit: MemberKit
  readonly #events: TermEvents
  readonly #leaderId: ServerId
  readonly #observer: boolean
  readonly #turns: Turns<LearnerInput, LearnerWork>
  readonly #learner: Learner
  readonly #jobs: Jobs
  readonly #keeper: Keeper
  readonly #calledOff = new AbortController()
  #wire: QuorumWire | undefined
  #splitter: PacketSplitter | undefined
  /** The snapshot is whole: the splitter goes on with packets. */
  #snapshotOver = false
  #sessions: LearnerSessions | undefined
  #clients: ClientSide<LearnerWrites<ClientConnection>> | undefined
  /** Who keeps this server up to date: the leader, or a follower of it. */
  #master: ServerId
  /** Those that this server keeps up to date. */
  #observers: Observers | undefined
  #cancelTick: Cancel = () => {}
  #over = false
  #hasHeard = false

  constructor(kit: MemberKit, leader: ServerId, observer: boolean, events: TermEvents) {
    this.#kit = kit
    this.#events = events
    this.#leaderId = this.#master = leader
    this.#observer = observer
    const { settings, membership, vault } = kit
    this.#learner = new Learner(
      {
        self: membership.self,
        observer,
        acceptedEpoch: vault.epochs.accepted,
        currentEpoch: vault.epochs.current,
        lastZxid: vault.trusted ? vault.lastZxid : UNTRUSTED,
        asksForAll: vault.trusted && vault.asksForAll,
        configVersion: membership.active.version,
        initLimit: settings.initLimit,
        syncLimit: settings.syncLimit,
      },
      {
        append: (zxid, payload) => this.#inOrder(() => this.#keeper.append(zxid, payload)),
        commit: (zxid, payload) => this.#inOrder(() => this.#commit(zxid, payload)),
        // O4
        ack: (zxid) => this.#inOrder(() => this.#wire!.send(PacketType.ack, zxid)),
      },
    )
    this.#keeper = new Keeper(kit, {
      durable: (zxid) => this.#turns.run(() => this.#learner.durable(zxid)),
      over: (because) => this.#leave(because),
    })
    this.#jobs = new Jobs({
      goOn: (action) => this.#turns.run(action),
      failed: (error) => this.#jobFailed(error),
    })
    this.#turns = new Turns({
      step: (input) => this.#learner.step(input),
      perform: (work) => this.#jobs.add(() => this.#perform(work)),
      failed: kit.failed,
      within: (action) => (this.#clients === undefined ? action() : this.#clients.core.turn(action)),
    })
  }

  get epoch(): number {
    return this.#learner.epoch
  }

  get leader(): ServerId {
    return this.#leaderId
  }

  async begin(): Promise<void> {
    try {
      const sought = { leader: this.#leaderId, observer: this.#observer, signal: this.#calledOff.signal }
      this.#connected(await reach(this.#kit, sought))
    } catch (error) {
      this.#leave({ reason: error instanceof Error ? error.message : String(error) })
    }
  }

  async end(): Promise<void> {
    this.#over = true
    this.#calledOff.abort()
    this.#turns.stop()
    this.#cancelTick()
    this.#clients?.end('Closed: this server does not follow any more')
    this.#wire?.close()
    this.#keeper.raw.end(new Error('The role is over'))
    await this.#observers?.end()
    // What the disk has begun comes to its end before another role looks at it.
    await this.#jobs.stop()
  }

  #leave(because: Over): void {
    if (this.#over) return
    this.#over = true
    // O7
    this.#turns.stop()
    this.#events.over(because)
  }

  #connected({ connection, master }: Reached): void {
    const { settings, ports } = this.#kit
    if (this.#over) return discard(connection)
    this.#master = master
    const splitter = new PacketSplitter({
      maxData: MAX_PACKET_BYTES,
      packet: (type, zxid, data) => {
        if (this.#clients === undefined) this.#tell(type, zxid)
        this.#turns.perform(this.#learner.receive(type, zxid, data))
      },
      raw: (bytes) => this.#offer(bytes),
    })
    this.#splitter = splitter
    this.#wire = new QuorumWire({
      wire: connection,
      clock: ports.clock,
      maxUnsentBytes: MAX_UNSENT_BYTES,
      took: (chunk) => this.#took(chunk),
      lost: (reason) => {
        splitter.stop()
        // Something took the connection in the leader's place, or the leader does not lead yet.
        if (!this.#hasHeard)
          this.#leave({ reason: `${reason} before the leader said anything`, unheard: true })
        this.#keeper.raw.end(new Error(reason))
        this.#turns.run(() => this.#turns.feed({ type: 'closed' }))
      },
    })
    this.#wire.expect(settings.initLimit * settings.tickTimeMs)
    this.#tick(ports.clock.monotonic())
    this.#turns.step({ type: 'connected' })
  }

  /** Says how this server is brought up to date. */
  #tell(type: number, zxid: Zxid): void {
    const how = type === PacketType.diff || type === PacketType.trunc || type === PacketType.snap
    if (!how) return
    const facts = { leader: this.#master, how: packetName(type), zxid: formatZxid(zxid) }
    this.#kit.ports.logger.info(facts, 'The leader brings this server up to date')
  }

  #took(chunk: Uint8Array): void {
    this.#hasHeard = true
    this.#turns.run(() => {
      this.#learner.heard()
      this.#splitter!.push(chunk)
    })
    this.#hold()
  }

  /** The leader is not read faster than the disk can take it. */
  #hold(): void {
    if (this.#keeper.pendingBytes < MAX_PENDING_BYTES) return
    this.#wire!.pause()
    void this.#keeper.log
      .flush()
      .catch(() => {})
      .then(() => this.#wire!.resume())
  }

  #tick(at: number): void {
    const { clock } = this.#kit.ports
    const next = Math.max(at + this.#kit.settings.tickTimeMs / 2, clock.monotonic())
    this.#cancelTick = clock.after(next - clock.monotonic(), 'half a tick of a learner', () => {
      this.#turns.step({ type: 'halfTick' })
      if (!this.#over) this.#tick(next)
    })
  }

  // Work

  #perform(work: LearnerWork): void | Promise<void> {
    if (this.#turns.stopped) return undefined
    const { membership, vault, ports } = this.#kit
    switch (work.do) {
      case 'send': {
        const { type, zxid, data, auth } = work.packet
        return this.#wire!.send(type, zxid, data, auth)
      }
      case 'store':
        return this.#then(this.#keeper.store(work.what, work.epoch), {
          type: 'stored',
          what: work.what,
          epoch: work.epoch,
        })
      case 'truncate':
        return this.#keeper.truncate(work.to).then((input) => this.#turns.step(input))
      case 'install':
        return this.#install(work.zxid)
      case 'append':
        return this.#keeper.append(work.zxid, work.payload)
      case 'commit':
        return this.#commit(work.zxid, work.payload)
      case 'harden':
        return this.#then(this.#keeper.harden(), { type: 'hardened' })
      case 'proposeConfiguration':
        this.#kit.configured()
        return membership.propose(work.configuration).then(() => this.#kit.configured())
      case 'activate':
        return this.#activate(work)
      case 'serve':
        return this.#serve(work.epoch)
      case 'pong':
        return this.#pong(work.zxid)
      case 'deliver':
        return this.#deliver(work.packet)
      case 'discard':
        ports.logger.error(
          { reason: work.reason },
          'The data of this server is not that of its leader; it will fetch all of it anew',
        )
        return vault.askForAll()
      case 'leave':
        return this.#leave({ reason: work.reason, again: work.again === true })
      case 'warn':
        return ports.logger.warn(work.facts, work.sentence)
    }
  }

  #then(done: Promise<void>, input: LearnerInput): Promise<void> {
    return done.then(() => this.#turns.step(input))
  }

  // Snapshots

  /** Bytes behind a SNAP packet. Reading stops until they are taken. */
  #offer(bytes: Uint8Array): number {
    if (this.#snapshotOver) {
      this.#snapshotOver = false
      return 0
    }
    this.#wire!.pause()
    this.#keeper.raw.push(bytes)
    return -1
  }

  /** The machine hears that the leader lives with each part; what comes behind the snapshot is packets again. */
  async #install(zxid: Zxid): Promise<void> {
    const input = await this.#keeper.install(zxid, (rest) => {
      this.#learner.heard()
      if (rest !== undefined) this.#goOn(rest)
      this.#wire!.resume()
    })
    if (input !== undefined) this.#turns.step(input)
  }

  #goOn(rest: Uint8Array): void {
    this.#snapshotOver = true
    if (rest.length > 0) this.#wire!.take(rest)
  }

  // History

  /** What the machine does directly comes behind the work that it has asked for before. */
  #inOrder(job: () => void): void {
    if (this.#jobs.idle) job()
    else this.#jobs.add(job)
  }

  #commit(zxid: Zxid, payload: Uint8Array): void {
    this.#keeper.committed(zxid, payload)
    if (this.#clients !== undefined) {
      this.#clients.writes.committed(zxid, payload)
      return this.#observers?.committed(zxid, payload)
    }
    const input = this.#keeper.apply(zxid, payload)
    if (input !== undefined) this.#turns.feed(input)
  }

  #jobFailed(error: unknown): void {
    if (error instanceof ProtocolError) return this.#leave({ reason: error.message })
    this.#kit.failed(error)
  }

  // Serving

  #activate({
    configuration,
    designated,
  }: Extract<LearnerWork, { do: 'activate' }>): Promise<void> | undefined {
    if (designated !== undefined) this.#observers?.activated(designated)
    const { over, kept } = activate(this.#kit, configuration, { leader: this.#leaderId, designated })
    if (over !== undefined) this.#leave(over)
    return kept
  }

  #serve(epoch: number): void {
    const { settings, vault } = this.#kit
    const sessions = new LearnerSessions(vault.sessions)
    this.#sessions = sessions
    // What the leader proposes from now on is logged at once.
    void this.#keeper.log
    this.#clients = new ClientSide(this.#kit, {
      sessions,
      role: roleFigures(this.#kit, {
        mode: this.#observer ? 'observer' : 'follower',
        peerState: () => `${this.#observer ? 'observing' : 'following'} - ${this.#learner.phase}`,
        ...(this.#observer ? { observerMasterId: this.#master } : {}),
        syncedObservers: () => this.#observers?.synced,
      }),
      writes: (kit) =>
        new LearnerWrites({
          ...kit,
          link: this.#link(),
          epochStart: makeZxid(epoch, 0),
          upgradesSessions: settings.localSessionsUpgradingEnabled,
          // It hears of them with each answer to a PING, of which there are two a tick; another follower's come on top.
          touchDelayMs: settings.tickTimeMs * (this.#master === this.#leaderId ? 1 : 1.5),
          keepsObservers: this.#keepsObservers,
        }),
    })
    this.#wire!.expect(settings.syncLimit * settings.tickTimeMs)
    this.#events.installed(epoch)
    this.#clients.open()
    if (this.#keepsObservers) this.#serveObservers(epoch, sessions)
  }

  get #keepsObservers(): boolean {
    return !this.#observer && this.#kit.settings.observerMasterPort > 0
  }

  #serveObservers(epoch: number, sessions: LearnerSessions): void {
    const { core, writes } = this.#clients!
    this.#observers = new Observers(this.#kit, {
      epoch,
      writes,
      sessions,
      within: (action) => core.turn(action),
    })
    this.#observers.open().catch(this.#kit.failed)
  }

  #link(): LeaderLink {
    const wire = this.#wire!
    return {
      forward: ({ sessionId: session, cxid, type, body, identities }) =>
        wire.write((out) =>
          writeForwardedRequest(
            out,
            { session, cxid, type, body },
            identities.length === 0 ? null : identities,
          ),
        ),
      revalidate: (session, timeout) =>
        wire.send(PacketType.revalidate, -1, encodeRevalidation({ session, timeout })),
      lastHeard: () => wire.heardAt,
      broken: (reason) => this.#leave({ reason }),
      diverged: (zxid) =>
        this.#turns.feed({
          type: 'diverged',
          zxid,
          reason: 'the digest of the tree is not the one that the leader foresaw',
        }),
    }
  }

  #pong(zxid: Zxid): void {
    const touched = this.#sessions?.takeTouched() ?? []
    const data = encodeTouches(touched.map(({ id, timeout }) => [id, timeout] as const))
    this.#wire!.send(PacketType.ping, zxid, data)
    this.#observers?.pinged(zxid)
  }

  #deliver({ type, data }: QuorumPacket): void {
    const writes = this.#clients?.writes
    if (writes === undefined) return
    if (type === PacketType.sync) return writes.synced()
    const { session, valid } = decodeRevalidationAnswer(data)
    writes.revalidated(session, valid)
  }
}

function discard(connection: Connection): void {
  connection.listen({ data() {}, drain() {}, closed() {} })
  connection.destroy()
}
