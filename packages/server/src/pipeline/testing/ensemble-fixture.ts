import { Reader } from '@zabra/protocol'
import { ManualClock } from '@zabra/runtime'
import { SessionMap } from '../../core/session-map.ts'
import {
  LearnerSessions,
  SessionTracker,
  type SessionPasswords,
  type SessionTable,
} from '../../core/sessions/index.ts'
import type { LoggedTxn, Zxid } from '../../core/types.ts'
import type { ForwardedRequest } from '../../core/zab/index.ts'
import type { ClientChannel } from '../../connections/client-channel.ts'
import { decodeLoggedTxn, isLargePayload } from '../../persistence/index.ts'
import type { ServerSettings } from '../../settings/index.ts'
import { LeaderPipeline } from '../leader-pipeline.ts'
import { LearnerPipeline } from '../learner-pipeline.ts'
import { PipelineFixture } from './pipeline-fixture.ts'
import { test } from 'vitest'

export const EPOCH: Zxid = 3 * 2 ** 32

/** Returns what a learner has decoded of a payload when it is committed. */
export const loggedIn = (payload: Uint8Array): LoggedTxn | undefined =>
  isLargePayload(payload) ? undefined : decodeLoggedTxn(new Reader(payload))

export interface EnsembleFixtureOptions {
  readonly localSessions?: boolean
  readonly canUpgradeSessions?: boolean
  /** Whether observers may connect to the learners. */
  readonly hasObservers?: boolean
  /** Sessions that were created before the epoch, with their timeouts. */
  readonly known?: readonly (readonly [bigint, number])[]
  readonly settings?: Partial<ServerSettings>
  readonly passwords?: SessionPasswords
}

/** A learner and both directions of its connection to the leader. */
export interface Learner {
  readonly fixture: PipelineFixture<LearnerPipeline<ClientChannel>>
  readonly sessions: LearnerSessions
  readonly table: SessionTable
  /** Packets that the learner has sent and the leader has not received. */
  readonly toLeader: (() => void)[]
  readonly fromLeader: (() => void)[]
  readonly requests: ForwardedRequest[]
  readonly broken: string[]
  readonly diverged: Zxid[]
  /** Whether packets of the leader are held back. */
  isHeld: boolean
}

interface Proposal {
  readonly zxid: Zxid
  readonly payload: Uint8Array
}

/** A leader with two learners. The test decides when messages arrive and proposals are committed. */
export class EnsembleFixture {
  readonly clock = new ManualClock()
  readonly table: SessionTable
  leader!: PipelineFixture<LeaderPipeline<ClientChannel>>
  readonly learners: Learner[] = []
  readonly proposals: Proposal[] = []
  readonly confirms: { readonly after: Zxid; readonly done: () => void }[] = []
  isAccepting = true
  /** The log of the leader. */
  readonly log = {
    state: 'open',
    append() {},
    appendPayload(): void {
      if (this.state !== 'open') throw new Error(`The log is ${this.state}`)
    },
  }
  /** All committed proposals. */
  readonly history: Proposal[] = []
  /** Whether proposals stay uncommitted. */
  holdsCommits = false
  /** Whether confirmations of leadership are held back. */
  holdsConfirms = false
  /** When learners last heard from their leader; now, if undefined. */
  heardAt: number | undefined
  #committed: Zxid = EPOCH

  private constructor(known: EnsembleFixtureOptions['known'] = []) {
    this.table = new SessionMap(known)
  }

  static async start(options: EnsembleFixtureOptions = {}): Promise<EnsembleFixture> {
    const ensemble = new EnsembleFixture(options.known)
    await ensemble.#openLeader(options)
    for (const serverId of [2, 3]) ensemble.learners.push(await ensemble.#openLearner(serverId, options))
    return ensemble
  }

  async #openLeader({
    localSessions = false,
    canUpgradeSessions: upgradesSessions = false,
    settings,
    passwords,
  }: EnsembleFixtureOptions): Promise<void> {
    const { clock } = this
    const isAccepting = (): boolean => this.isAccepting
    this.leader = await PipelineFixture.open({
      clock,
      settle: () => this.settle(),
      localSessions,
      ...(settings === undefined ? {} : { settings }),
      ...(passwords === undefined ? {} : { passwords }),
      sessions: new SessionTracker(1000, clock.monotonic(), { table: this.table }),
      createPipeline: (context) =>
        new LeaderPipeline({
          ...context,
          log: this.log,
          quorum: {
            sendsPayloads: true,
            get isAccepting() {
              return isAccepting()
            },
            propose: (zxid, payload) => void this.proposals.push({ zxid, payload }),
            confirmLeadership: (done) =>
              void this.confirms.push({ after: this.leader.pipeline.proposer.lastZxid, done }),
            sendSync: (learner) => {
              const { fixture, fromLeader } = learner as Learner
              fromLeader.push(() => fixture.pipeline.completeSync())
            },
          },
          lastZxid: EPOCH,
          serverId: 1,
          canUpgradeSessions: upgradesSessions,
        }),
    })
  }

  async #openLearner(
    serverId: number,
    {
      localSessions = false,
      canUpgradeSessions: upgradesSessions = false,
      hasObservers: keepsObservers = false,
      known = [],
      settings,
      passwords,
    }: EnsembleFixtureOptions,
  ): Promise<Learner> {
    const { clock } = this
    const table: SessionTable = new SessionMap(known)
    const sessions = new LearnerSessions(table)
    const toLeader: (() => void)[] = []
    const fromLeader: (() => void)[] = []
    const requests: ForwardedRequest[] = []
    const broken: string[] = []
    const diverged: Zxid[] = []
    const fixture = await PipelineFixture.open({
      clock,
      settle: () => this.settle(),
      serverId,
      sessions,
      localSessions,
      ...(settings === undefined ? {} : { settings }),
      ...(passwords === undefined ? {} : { passwords }),
      createPipeline: (context) =>
        new LearnerPipeline({
          ...context,
          epochStart: EPOCH,
          canUpgradeSessions: upgradesSessions,
          touchDelayMs: 1000,
          hasObservers: keepsObservers,
          leader: {
            forward: (sent) => {
              const request = { ...sent, body: new Uint8Array(sent.body) }
              requests.push(request)
              toLeader.push(() => this.leader.pipeline.submitForwarded(learner, request))
            },
            revalidate: (id, timeout) =>
              void toLeader.push(() =>
                this.leader.pipeline.revalidateForLearner(learner, id, timeout, (valid) =>
                  fromLeader.push(() => learner.fixture.pipeline.completeRevalidation(id, valid)),
                ),
              ),
            lastContactAt: () => this.heardAt ?? clock.monotonic(),
            fail: (reason) => void broken.push(reason),
            reportDivergence: (zxid) => void diverged.push(zxid),
          },
        }),
    })
    const learner: Learner = {
      fixture,
      sessions,
      table,
      toLeader,
      fromLeader,
      requests,
      broken,
      diverged,
      isHeld: false,
    }
    return learner
  }

  /** Submits a request to the leader, as one that a learner has forwarded. */
  forward(
    learner: Learner,
    sessionId: bigint,
    xid: number,
    type: number,
    body: Uint8Array = new Uint8Array(0),
  ): void {
    const request = { sessionId, xid, type, body, identities: [] }
    this.leader.clientService.runTurn(() => this.leader.pipeline.submitForwarded(learner, request))
  }

  /** Runs everything that is not held back and needs no time. */
  async settle(): Promise<void> {
    do await this.clock.untilIdle()
    while (this.#step())
  }

  /** Commits the proposals that were held back, and all later ones. */
  commitHeld(): Promise<void> {
    this.holdsCommits = false
    return this.settle()
  }

  async advance(ms: number): Promise<void> {
    for (let left = ms; left > 0; left -= 100) {
      this.clock.advance(Math.min(left, 100))
      await this.settle()
    }
  }

  /** Reports touched sessions from the learners to the leader, as in their answers to a PING. */
  ping(): void {
    for (const { sessions } of this.learners) {
      const touched = sessions.takeTouched().map(({ id, timeout }) => [id, timeout] as const)
      this.leader.clientService.runTurn(() => {
        for (const [id, timeout] of touched) this.leader.pipeline.touchSession(id, timeout)
      })
    }
  }

  /** Expires sessions as the leader does at a tick. */
  expire(): void {
    this.leader.clientService.runTurn(() => this.leader.clientService.expiry.run())
  }

  /** Commits the oldest proposal. */
  commitNext(): void {
    const { zxid, payload } = this.proposals.shift()!
    this.history.push({ zxid, payload })
    this.#committed = zxid
    for (const { fixture, fromLeader } of this.learners)
      fromLeader.push(() => fixture.pipeline.applyCommitted(zxid, payload, loggedIn(payload)))
    this.leader.clientService.runTurn(() => this.leader.pipeline.commit(zxid))
  }

  #step(): boolean {
    let moved = false
    for (const { toLeader } of this.learners) {
      for (const take of toLeader.splice(0)) {
        moved = true
        this.leader.clientService.runTurn(take)
      }
    }
    while (!this.holdsCommits && this.proposals.length > 0) {
      moved = true
      this.commitNext()
    }
    while (!this.holdsConfirms && this.confirms.length > 0 && this.confirms[0]!.after <= this.#committed) {
      moved = true
      const { done } = this.confirms.shift()!
      this.leader.clientService.runTurn(done)
    }
    for (const { fixture, fromLeader, isHeld: held } of this.learners) {
      if (held) continue
      for (const take of fromLeader.splice(0)) {
        moved = true
        fixture.clientService.runTurn(take)
      }
    }
    return moved
  }
}

/** A test with an ensemble of its own and, where it names them, its first learner and a client of the leader. */
export const it = test
  .extend('ensemble', () => EnsembleFixture.start())
  .extend('learner', ({ ensemble }) => ensemble.learners[0]!)
  .extend('client', ({ ensemble }) => ensemble.leader.connect())
