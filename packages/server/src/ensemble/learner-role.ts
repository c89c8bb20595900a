import { formatZxid, makeZxid, ProtocolError } from '@zabra/protocol'
import type { Cancel, Connection } from '@zabra/runtime'
import { UNTRUSTED_ZXID } from '../core/election/index.ts'
import type { ServerId } from '../core/quorum/index.ts'
import { LearnerSessions } from '../core/sessions/index.ts'
import type { Zxid } from '../core/types.ts'
import {
  decodeRevalidationReply,
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
} from '../core/zab/index.ts'
import type { ClientChannel } from '../connections/client-channel.ts'
import { LearnerPipeline, type LeaderChannel } from '../pipeline/index.ts'
import { activateConfiguration } from './activation.ts'
import { RoleClients } from './role-clients.ts'
import { roleMetrics } from './role-metrics.ts'
import { SerialExecutor } from './serial-executor.ts'
import { Durability } from './durability.ts'
import type { MemberContext, RoleExit, ActiveRole, RoleEvents } from './context.ts'
import { ObserverMasterRole } from './observer-master-role.ts'
import { PeerConnection } from './peer-connection.ts'
import { connectToMaster, type MasterConnection } from './connect-to-master.ts'
import { Mailbox } from './mailbox.ts'

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
export class LearnerRole implements ActiveRole {
  readonly #context: MemberContext
  readonly #events: RoleEvents
  readonly #leaderId: ServerId
  readonly #observer: boolean
  readonly #mailbox: Mailbox<LearnerInput, LearnerWork>
  readonly #learner: Learner
  readonly #jobs: SerialExecutor
  readonly #durability: Durability
  readonly #calledOff = new AbortController()
  #wire: PeerConnection | undefined
  #splitter: PacketSplitter | undefined
  /** The snapshot is whole: the splitter goes on with packets. */
  #snapshotOver = false
  #sessions: LearnerSessions | undefined
  #clients: RoleClients<LearnerPipeline<ClientChannel>> | undefined
  /** Who keeps this server up to date: the leader, or a follower of it. */
  #master: ServerId
  /** Those that this server keeps up to date. */
  #observers: ObserverMasterRole | undefined
  #cancelTick: Cancel = () => {}
  #over = false
  #hasHeard = false

  constructor(context: MemberContext, leader: ServerId, observer: boolean, events: RoleEvents) {
    this.#context = context
    this.#events = events
    this.#leaderId = this.#master = leader
    this.#observer = observer
    const { settings, membership, database } = context
    this.#learner = new Learner(
      {
        self: membership.self,
        observer,
        acceptedEpoch: database.epochs.accepted,
        currentEpoch: database.epochs.current,
        lastZxid: database.isEligibleToVote ? database.lastZxid : UNTRUSTED_ZXID,
        needsFullSync: database.isEligibleToVote && database.isFullSyncRequested,
        configVersion: membership.active.version,
        initLimit: settings.initLimit,
        syncLimit: settings.syncLimit,
      },
      {
        append: (zxid, payload) => this.#inOrder(() => this.#durability.append(zxid, payload)),
        commit: (zxid, payload) => this.#inOrder(() => this.#commit(zxid, payload)),
        // O4
        ack: (zxid) => this.#inOrder(() => this.#wire!.send(PacketType.ack, zxid)),
      },
    )
    this.#durability = new Durability(context, {
      durable: (zxid) => this.#mailbox.run(() => this.#learner.markDurable(zxid)),
      diskFull: (_, { message: reason }) => this.#leave({ reason, electionDelayMs: settings.tickTimeMs }),
      spaceAvailable() {},
    })
    this.#jobs = new SerialExecutor({
      resume: (action) => this.#mailbox.run(action),
      failed: (error) => this.#jobFailed(error),
    })
    this.#mailbox = new Mailbox({
      step: (input) => this.#learner.step(input),
      perform: (work) => this.#jobs.add(() => this.#perform(work)),
      failed: context.failed,
      runInBatch: (action) =>
        this.#clients === undefined ? action() : this.#clients.service.runTurn(action),
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
      this.#connected(await connectToMaster(this.#context, sought))
    } catch (error) {
      this.#leave({ reason: error instanceof Error ? error.message : String(error) })
    }
  }

  async end(): Promise<void> {
    this.#over = true
    this.#calledOff.abort()
    this.#mailbox.stop()
    this.#cancelTick()
    this.#clients?.end('Closed: this server does not follow any more')
    this.#wire?.close()
    this.#durability.snapshotBytes.end(new Error('The role is over'))
    await this.#observers?.end()
    // What the disk has begun comes to its end before another role looks at it.
    await this.#jobs.stop()
  }

  #leave(because: RoleExit): void {
    if (this.#over) return
    this.#over = true
    // O7
    this.#mailbox.stop()
    this.#events.exited(because)
  }

  #connected({ connection, master }: MasterConnection): void {
    const { settings, platform } = this.#context
    if (this.#over) return discard(connection)
    this.#master = master
    const splitter = new PacketSplitter({
      maxData: MAX_PACKET_BYTES,
      packet: (type, zxid, data) => {
        if (this.#clients === undefined) this.#tell(type, zxid)
        this.#mailbox.perform(this.#learner.receive(type, zxid, data))
      },
      raw: (bytes) => this.#offer(bytes),
    })
    this.#splitter = splitter
    this.#wire = new PeerConnection({
      connection: connection,
      clock: platform.clock,
      maxUnsentBytes: MAX_UNSENT_BYTES,
      received: (chunk) => this.#took(chunk),
      lost: (reason) => {
        splitter.stop()
        // Something took the connection in the leader's place, or the leader does not lead yet.
        if (!this.#hasHeard)
          this.#leave({ reason: `${reason} before the leader said anything`, leaderSilent: true })
        this.#durability.snapshotBytes.end(new Error(reason))
        this.#mailbox.run(() => this.#mailbox.enqueue({ type: 'closed' }))
      },
    })
    this.#wire.setReadTimeout(settings.initLimit * settings.tickTimeMs)
    this.#tick(platform.clock.monotonic())
    this.#mailbox.post({ type: 'connected' })
  }

  /** Says how this server is brought up to date. */
  #tell(type: number, zxid: Zxid): void {
    const how = type === PacketType.diff || type === PacketType.trunc || type === PacketType.snap
    if (!how) return
    const facts = { leader: this.#master, how: packetName(type), zxid: formatZxid(zxid) }
    this.#context.platform.logger.info(facts, 'The leader brings this server up to date')
  }

  #took(chunk: Uint8Array): void {
    this.#hasHeard = true
    this.#mailbox.run(() => {
      this.#learner.heartbeat()
      this.#splitter!.push(chunk)
    })
    this.#hold()
  }

  /** The leader is not read faster than the disk can take it. */
  #hold(): void {
    if (this.#durability.pendingBytes < MAX_PENDING_BYTES) return
    this.#wire!.pause()
    void this.#durability.log
      .flush()
      .catch(() => {})
      .then(() => this.#wire!.resume())
  }

  #tick(at: number): void {
    const { clock } = this.#context.platform
    const next = Math.max(at + this.#context.settings.tickTimeMs / 2, clock.monotonic())
    this.#cancelTick = clock.after(next - clock.monotonic(), 'half a tick of a learner', () => {
      this.#mailbox.post({ type: 'halfTick' })
      if (!this.#over) this.#tick(next)
    })
  }

  // Work

  #perform(work: LearnerWork): void | Promise<void> {
    if (this.#mailbox.stopped) return undefined
    const { membership, database, platform } = this.#context
    switch (work.do) {
      case 'send': {
        const { type, zxid, data, auth } = work.packet
        return this.#wire!.send(type, zxid, data, auth)
      }
      case 'store':
        return this.#then(this.#durability.storeEpoch(work.what, work.epoch), {
          type: 'stored',
          what: work.what,
          epoch: work.epoch,
        })
      case 'truncate':
        return this.#durability.truncate(work.to).then((input) => this.#mailbox.post(input))
      case 'install':
        return this.#install(work.zxid)
      case 'append':
        return this.#durability.append(work.zxid, work.payload)
      case 'commit':
        return this.#commit(work.zxid, work.payload)
      case 'harden':
        return this.#then(this.#durability.flush(), { type: 'hardened' })
      case 'proposeConfiguration':
        this.#context.configurationChanged()
        return membership.propose(work.configuration).then(() => this.#context.configurationChanged())
      case 'activate':
        return this.#activate(work)
      case 'serve':
        return this.#serve(work.epoch)
      case 'pong':
        return this.#pong(work.zxid)
      case 'deliver':
        return this.#deliver(work.packet)
      case 'discard':
        platform.logger.error(
          { reason: work.reason },
          'The data of this server is not that of its leader; it will fetch all of it anew',
        )
        return database.requestFullSync()
      case 'leave':
        return this.#leave({ reason: work.reason, reconnect: work.again === true })
      case 'warn':
        return platform.logger.warn(work.facts, work.sentence)
    }
  }

  #then(done: Promise<void>, input: LearnerInput): Promise<void> {
    return done.then(() => this.#mailbox.post(input))
  }

  // Snapshots

  /** Bytes behind a SNAP packet. Reading stops until they are taken. */
  #offer(bytes: Uint8Array): number {
    if (this.#snapshotOver) {
      this.#snapshotOver = false
      return 0
    }
    this.#wire!.pause()
    this.#durability.snapshotBytes.push(bytes)
    return -1
  }

  /** The machine hears that the leader lives with each part; what comes behind the snapshot is packets again. */
  async #install(zxid: Zxid): Promise<void> {
    const input = await this.#durability.receiveSnapshot(zxid, (rest) => {
      this.#learner.heartbeat()
      if (rest !== undefined) this.#goOn(rest)
      this.#wire!.resume()
    })
    if (input !== undefined) this.#mailbox.post(input)
  }

  #goOn(rest: Uint8Array): void {
    this.#snapshotOver = true
    if (rest.length > 0) this.#wire!.receive(rest)
  }

  // History

  /** What the machine does directly comes behind the work that it has asked for before. */
  #inOrder(job: () => void): void {
    if (this.#jobs.isIdle) job()
    else this.#jobs.add(job)
  }

  #commit(zxid: Zxid, payload: Uint8Array): void {
    this.#durability.recordCommit(zxid, payload)
    if (this.#clients !== undefined) {
      this.#clients.pipeline.applyCommitted(zxid, payload)
      return this.#observers?.committed(zxid, payload)
    }
    const input = this.#durability.apply(zxid, payload)
    if (input !== undefined) this.#mailbox.enqueue(input)
  }

  #jobFailed(error: unknown): void {
    if (error instanceof ProtocolError) return this.#leave({ reason: error.message })
    this.#context.failed(error)
  }

  // Serving

  #activate({
    configuration,
    designated,
  }: Extract<LearnerWork, { do: 'activate' }>): Promise<void> | undefined {
    if (designated !== undefined) this.#observers?.activated(designated)
    const { exit: over, persisted: kept } = activateConfiguration(this.#context, configuration, {
      leader: this.#leaderId,
      designated,
    })
    if (over !== undefined) this.#leave(over)
    return kept
  }

  #serve(epoch: number): void {
    const { settings, database } = this.#context
    const sessions = new LearnerSessions(database.sessions)
    this.#sessions = sessions
    // What the leader proposes from now on is logged at once.
    void this.#durability.log
    this.#clients = new RoleClients(this.#context, {
      sessions,
      role: roleMetrics(this.#context, {
        mode: this.#observer ? 'observer' : 'follower',
        peerState: () => `${this.#observer ? 'observing' : 'following'} - ${this.#learner.phase}`,
        ...(this.#observer ? { observerMasterId: this.#master } : {}),
        syncedObservers: () => this.#observers?.syncedObservers,
      }),
      pipeline: (context) =>
        new LearnerPipeline({
          ...context,
          leader: this.#link(),
          epochStart: makeZxid(epoch, 0),
          canUpgradeSessions: settings.localSessionsUpgradingEnabled,
          // It hears of them with each answer to a PING, of which there are two a tick; another follower's come on top.
          touchDelayMs: settings.tickTimeMs * (this.#master === this.#leaderId ? 1 : 1.5),
          hasObservers: this.#keepsObservers,
        }),
    })
    this.#wire!.setReadTimeout(settings.syncLimit * settings.tickTimeMs)
    this.#events.established(epoch)
    this.#clients.open()
    if (this.#keepsObservers) this.#serveObservers(epoch, sessions)
  }

  get #keepsObservers(): boolean {
    return !this.#observer && this.#context.settings.observerMasterPort > 0
  }

  #serveObservers(epoch: number, sessions: LearnerSessions): void {
    const { service: core, pipeline } = this.#clients!
    this.#observers = new ObserverMasterRole(this.#context, {
      epoch,
      pipeline,
      sessions,
      runInBatch: (action) => core.runTurn(action),
    })
    this.#observers.open().catch(this.#context.failed)
  }

  #link(): LeaderChannel {
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
      lastContactAt: () => wire.lastReceivedAt,
      fail: (reason) => this.#leave({ reason }),
      reportDivergence: (zxid) =>
        this.#mailbox.enqueue({
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
    const pipeline = this.#clients?.pipeline
    if (pipeline === undefined) return
    if (type === PacketType.sync) return pipeline.completeSync()
    const { session, valid } = decodeRevalidationReply(data)
    pipeline.completeRevalidation(session, valid)
  }
}

function discard(connection: Connection): void {
  connection.setHandler({ data() {}, drain() {}, closed() {} })
  connection.destroy()
}
