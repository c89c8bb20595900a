import { ManualClock, silentLogger, type Connection } from '@zabra/runtime'
import { describe, expect, it } from 'vitest'
import { SessionTracker } from '../core/sessions/index.ts'
import type { RequestPipeline } from '../pipeline/index.ts'
import type { ConnectionRegistry } from './connection-registry.ts'
import { FlowControl, PauseReason } from './flow-control.ts'
import { RefusalLog } from './refusal-log.ts'
import type { CloseCause } from './close-cause.ts'
import { SessionExpiry } from './session-expiry.ts'
import { ServerStats } from './stats.ts'

describe('SessionExpiry', () => {
  /** Two sessions whose time is over, the second with a connection. `fillsDisk`: the first end of a session fills the disk. */
  function fixture({
    reason,
    isBackpressured = false,
    fillsDisk = false,
    isLocal = false,
  }: {
    readonly reason?: PauseReason
    readonly isBackpressured?: boolean
    readonly fillsDisk?: boolean
    readonly isLocal?: boolean
  }) {
    const clock = new ManualClock()
    const sessions = new SessionTracker(1000, 0, { isLocal })
    const [first, second] = [sessions.add(1n, 4000, 0), sessions.add(2n, 4000, 0)] as const
    const closed: bigint[] = []
    const destroyed: string[] = []
    const later: (() => void)[] = []
    const pipeline = {
      isWritable: true,
      closeSession: (id: bigint) => {
        closed.push(id)
        pipeline.isWritable = !fillsDisk
        return true
      },
    }
    const wire = { pause() {}, resume() {} } as unknown as Connection
    const flow = new FlowControl(wire, { sends: { add() {} }, onSent() {} })
    if (reason !== undefined) flow.pause(reason)
    flow.isBackpressured = isBackpressured
    const channel = {
      flow,
      destroy: (_cause: CloseCause, why: string) => void destroyed.push(why),
    }
    const expiry = new SessionExpiry({
      clock,
      refusals: new RefusalLog({ clock, logger: silentLogger }),
      sessions: isLocal ? new SessionTracker(1000, 0) : sessions,
      localSessions: isLocal ? sessions : undefined,
      pipeline: pipeline as unknown as RequestPipeline,
      connections: {
        ofSession: (id: bigint) => (id === 2n ? channel : undefined),
      } as unknown as ConnectionRegistry,
      stats: new ServerStats(),
      audit: undefined,
      runLater: (action) => void later.push(action),
    })
    clock.advance(6000)
    return { clock, sessions, expiry, first, second, closed, destroyed, later }
  }

  it.each([PauseReason.overload, PauseReason.turn, PauseReason.receive, PauseReason.backlog])(
    'reopens the session of a client that is throttled (%i) before any of its requests is handled',
    (reason) => {
      const { clock, expiry, first, second, closed, destroyed } = fixture({ reason })
      expiry.run()
      expect([first.isClosing, second.isClosing]).toEqual([true, false])
      expect(second.deadline).toBe(clock.monotonic() + 4000)
      expect([closed, destroyed]).toEqual([[1n], []])
    },
  )

  it('reopens the local session of a client that is throttled, and ends others', () => {
    const { clock, sessions, expiry, second } = fixture({ reason: PauseReason.backlog, isLocal: true })
    expiry.run()
    expect([...sessions]).toEqual([second])
    expect([second.isClosing, second.deadline]).toEqual([false, clock.monotonic() + 4000])
  })

  it('ends the session of a client that has a backlog and does not read its replies', () => {
    const { expiry, second } = fixture({ reason: PauseReason.backlog, isBackpressured: true })
    expiry.run()
    expect(second.isClosing).toBe(true)
  })

  it('closes sessions in the order in which they were opened, and marks no others as closing meanwhile', () => {
    const { expiry, sessions, closed, later } = fixture({})
    for (let id = 3n; id <= 1000n; id++) sessions.add(id, 4000, 0)
    const closing = (): number => [...sessions].filter(({ isClosing }) => isClosing).length
    const turns: number[] = []
    while (closed.length < 1000) {
      expiry.run()
      turns.push(closing())
      later.shift()!()
    }
    expect(turns).toEqual([500, 500, 500, 500, 500, 1000, 1000, 1000, 1000])
    expect(closed).toEqual(Array.from({ length: 1000 }, (_, i) => BigInt(i + 1)))
  })

  it('closes the connection of a session that it reopens because the disk is full: its requests were ignored', () => {
    const { expiry, second, closed, destroyed, later } = fixture({ fillsDisk: true })
    expiry.run()
    while (later.length > 0) later.shift()!()
    expect([closed, second.isClosing]).toEqual([[1n], false])
    expect(destroyed).toEqual(['Closed: its session had expired, and the disk is full'])
  })
})
