import { ManualClock } from '@zabra/runtime'
import { LearnerSessions, SessionTracker, type SessionTable } from '../../../core/sessions/index.ts'
import type { Zxid } from '../../../core/types.ts'
import type { ClientConnection } from '../../connection.ts'
import type { LearnerRequest } from '../leader-contract.ts'
import { LeaderWrites } from '../leader-writes.ts'
import { LearnerWrites } from '../learner-writes.ts'
import { Side } from './side.ts'

export const EPOCH: Zxid = 3 * 2 ** 32

export interface TrioOptions {
  readonly localSessions?: boolean
  readonly upgradesSessions?: boolean
  /** Whether observers may stand behind the learners. */
  readonly keepsObservers?: boolean
  /** Sessions from before the epoch, with their timeouts. */
  readonly known?: readonly (readonly [bigint, number])[]
}

/** A learner and both directions of its connection to the leader. */
export interface Learner {
  readonly side: Side<LearnerWrites<ClientConnection>>
  readonly sessions: LearnerSessions
  readonly table: SessionTable
  /** What it has sent and the leader has not taken. */
  readonly toLeader: (() => void)[]
  readonly fromLeader: (() => void)[]
  readonly requests: LearnerRequest[]
  readonly broken: string[]
  readonly diverged: Zxid[]
  /** The packets of the leader stay on their way. */
  held: boolean
}

interface Proposal {
  readonly zxid: Zxid
  readonly payload: Uint8Array
}

/** A leader with two learners, whose messages and commits go when the test says so. */
export class Trio {
  readonly clock = new ManualClock()
  readonly table: SessionTable
  leader!: Side<LeaderWrites<ClientConnection>>
  readonly learners: Learner[] = []
  readonly proposals: Proposal[] = []
  readonly confirms: { readonly after: Zxid; readonly done: () => void }[] = []
  accepting = true
  /** All that was committed. */
  readonly history: Proposal[] = []
  /** Nothing is committed. */
  holdsCommits = false
  /** No quorum confirms. */
  holdsConfirms = false
  /** When learners last heard their leader; now, when undefined. */
  heardAt: number | undefined
  #committed: Zxid = EPOCH

  private constructor(known: TrioOptions['known'] = []) {
    this.table = new Map(known)
  }

  static async start(options: TrioOptions = {}): Promise<Trio> {
    const trio = new Trio(options.known)
    await trio.#openLeader(options)
    for (const serverId of [2, 3]) trio.learners.push(await trio.#openLearner(serverId, options))
    return trio
  }

  async #openLeader({ localSessions = false, upgradesSessions = false }: TrioOptions): Promise<void> {
    const { clock } = this
    const isAccepting = (): boolean => this.accepting
    this.leader = await Side.open({
      clock,
      localSessions,
      sessions: new SessionTracker(1000, clock.monotonic(), { table: this.table }),
      writes: (kit) =>
        new LeaderWrites({
          ...kit,
          journal: { state: 'open', append() {} },
          quorum: {
            get accepting() {
              return isAccepting()
            },
            propose: (zxid, payload) => void this.proposals.push({ zxid, payload }),
            confirm: (done) => void this.confirms.push({ after: this.leader.writes.lastZxid, done }),
            synced: (learner) => {
              const { side, fromLeader } = learner as Learner
              fromLeader.push(() => side.writes.synced())
            },
          },
          lastZxid: EPOCH,
          serverId: 1,
          upgradesSessions,
        }),
    })
  }

  async #openLearner(
    serverId: number,
    { localSessions = false, upgradesSessions = false, keepsObservers = false, known = [] }: TrioOptions,
  ): Promise<Learner> {
    const { clock } = this
    const table: SessionTable = new Map(known)
    const sessions = new LearnerSessions(table)
    const toLeader: (() => void)[] = []
    const fromLeader: (() => void)[] = []
    const requests: LearnerRequest[] = []
    const broken: string[] = []
    const diverged: Zxid[] = []
    const side = await Side.open({
      clock,
      serverId,
      sessions,
      localSessions,
      writes: (kit) =>
        new LearnerWrites({
          ...kit,
          epochStart: EPOCH,
          upgradesSessions,
          touchDelayMs: 1000,
          keepsObservers,
          link: {
            forward: (sent) => {
              const request = { ...sent, body: new Uint8Array(sent.body) }
              requests.push(request)
              toLeader.push(() => this.leader.writes.request(learner, request))
            },
            revalidate: (id, timeout) =>
              void toLeader.push(() => {
                const valid = this.leader.writes.revalidateFor(learner, id, timeout)
                fromLeader.push(() => learner.side.writes.revalidated(id, valid))
              }),
            lastHeard: () => this.heardAt ?? clock.monotonic(),
            broken: (reason) => void broken.push(reason),
            diverged: (zxid) => void diverged.push(zxid),
          },
        }),
    })
    const learner: Learner = { side, sessions, table, toLeader, fromLeader, requests, broken, diverged, held: false }
    return learner
  }

  /** Lets everything happen that is not held and needs no time. */
  async settle(): Promise<void> {
    do await this.clock.settle()
    while (this.#step())
  }

  async advance(ms: number): Promise<void> {
    for (let left = ms; left > 0; left -= 100) {
      this.clock.advance(Math.min(left, 100))
      await this.settle()
    }
  }

  /** The learners tell the leader whom they have heard, as in their answers to a PING. */
  ping(): void {
    for (const { sessions } of this.learners) {
      const touched = sessions.takeTouched().map(({ id, timeout }) => [id, timeout] as const)
      this.leader.core.turn(() => {
        for (const [id, timeout] of touched) this.leader.writes.touch(id, timeout)
      })
    }
  }

  /** What the leader would do at its tick. */
  expire(): void {
    this.leader.core.turn(() => this.leader.core.expireSessions())
  }

  /** Commits the oldest proposal. */
  commitNext(): void {
    const { zxid, payload } = this.proposals.shift()!
    this.history.push({ zxid, payload })
    this.#committed = zxid
    this.leader.core.turn(() => this.leader.writes.commit(zxid))
    for (const { side, fromLeader } of this.learners)
      fromLeader.push(() => side.writes.committed(zxid, payload))
  }

  #step(): boolean {
    let moved = false
    for (const { toLeader } of this.learners) {
      for (const take of toLeader.splice(0)) {
        moved = true
        this.leader.core.turn(take)
      }
    }
    while (!this.holdsCommits && this.proposals.length > 0) {
      moved = true
      this.commitNext()
    }
    while (!this.holdsConfirms && this.confirms.length > 0 && this.confirms[0]!.after <= this.#committed) {
      moved = true
      const { done } = this.confirms.shift()!
      this.leader.core.turn(done)
    }
    for (const { side, fromLeader, held } of this.learners) {
      if (held) continue
      for (const take of fromLeader.splice(0)) {
        moved = true
        side.core.turn(take)
      }
    }
    return moved
  }
}
