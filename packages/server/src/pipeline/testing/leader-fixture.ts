import {
  CreateMode,
  OPEN_ACL_UNSAFE,
  OpCode,
  Reader,
  writeCreateRequest,
  writeMultiRequest,
  Writer,
} from '@zabra/protocol'
import { ManualClock } from '@zabra/runtime'
import type { ClientChannel } from '../../connections/client-channel.ts'
import { SessionTracker } from '../../core/sessions/index.ts'
import type { LoggedTxn, Zxid } from '../../core/types.ts'
import { LeaderPipeline } from '../leader-pipeline.ts'
import type { WriteCallback } from '../types.ts'
import { PipelineFixture } from './pipeline-fixture.ts'

export interface LeaderFixtureOptions {
  readonly sendsPayloads?: boolean
  readonly localSessions?: boolean
  readonly canUpgradeSessions?: boolean
  /** Whether a quorum confirms the leadership during the call that asks for it. */
  readonly confirmsAtOnce?: boolean
}

/** A global session. */
export const SESSION = 7n

/** A leader without connections. The test calls its pipeline, commits and confirms, and fills the disk. */
export async function leaderFixture(options: LeaderFixtureOptions = {}) {
  const {
    sendsPayloads = true,
    localSessions: hasLocalSessions = false,
    canUpgradeSessions,
    confirmsAtOnce = false,
  } = options
  const clock = new ManualClock()
  const log = {
    state: 'open',
    /** Transactions that were appended, and encoded ones. */
    appended: [] as LoggedTxn[],
    payloads: [] as Uint8Array[],
    append: (logged: LoggedTxn) => void log.appended.push(logged),
    appendPayload: (_zxid: Zxid, payload: Uint8Array) => void log.payloads.push(payload),
  }
  const proposed: LoggedTxn[] = []
  const confirms: { readonly proposals: number; readonly done: () => void }[] = []
  const quorum = {
    sendsPayloads,
    isAccepting: true,
    propose: (_zxid: Zxid, _payload: Uint8Array, logged: LoggedTxn) => void proposed.push(logged),
    confirmLeadership: (done: () => void) =>
      confirmsAtOnce ? done() : void confirms.push({ proposals: proposed.length, done }),
    sendSync() {},
  }
  const fixture = await PipelineFixture.open({
    clock,
    localSessions: hasLocalSessions,
    sessions: new SessionTracker(1000, 0),
    createPipeline: (context) =>
      new LeaderPipeline<ClientChannel>({
        ...context,
        log,
        quorum,
        lastZxid: 0,
        serverId: 1,
        ...(canUpgradeSessions === undefined ? {} : { canUpgradeSessions }),
      }),
  })
  const { pipeline, clientService, tree } = fixture
  /** What callbacks were told, in order. */
  const outcomes: string[] = []
  const callback: WriteCallback = {
    onPart() {},
    onApplied: ({ xid }, err) => void outcomes.push(`applied ${xid}: ${err}`),
    onLost: ({ xid, type }) => void outcomes.push(`lost ${xid}, type ${type}`),
    onSynced: () => void outcomes.push('synced'),
  }
  const run = <T>(action: () => T): T => {
    let result!: T
    clientService.runTurn(() => void (result = action()))
    return result
  }
  const { sessions, localSessions } = clientService
  sessions.add(SESSION, 10_000, 0)
  const write = (xid: number, type: number, body: Uint8Array, { sessionId = SESSION, its = callback } = {}) =>
    run(() => pipeline.write({ sessionId, xid, type, identities: [] }, new Reader(body), its))
  const commit = (zxid: Zxid = pipeline.proposer.lastZxid): void => run(() => pipeline.commit(zxid))
  return {
    clock,
    log,
    quorum,
    proposed,
    confirms,
    pipeline,
    clientService,
    sessions,
    localSessions: localSessions!,
    tree,
    outcomes,
    failures: fixture.failures,
    callback,
    run,
    commit,
    /** Submits a write of `SESSION`. Returns what the pipeline returns. */
    write,
    /** As `write`, for a multi that is prepared in steps. */
    writeLarge: (xid: number) => write(xid, OpCode.multi, multiOf(600)),
    /** Submits a sync. Returns what the pipeline returns. */
    sync: (xid: number) =>
      run(() => pipeline.sync({ sessionId: SESSION, xid, type: OpCode.sync, identities: [] }, callback)),
    /** Runs everything that needs no time, and commits what it proposes. */
    settle: async (): Promise<void> => {
      await clock.untilIdle()
      commit()
      await clock.untilIdle()
    },
  }
}

const bytes = (write: (w: Writer) => void): Uint8Array => {
  const writer = new Writer()
  write(writer)
  return writer.take()
}

export const createBody = (path: string, flags: number = CreateMode.PERSISTENT): Uint8Array =>
  bytes((w) => writeCreateRequest(w, { path, data: null, acl: OPEN_ACL_UNSAFE, flags }))

/** A multi of so many checks, with 17 bytes each. */
export const multiOf = (parts: number): Uint8Array =>
  bytes((w) =>
    writeMultiRequest(
      w,
      Array.from({ length: parts }, () => ({ type: OpCode.check, path: '/', version: -1 }) as const),
    ),
  )
