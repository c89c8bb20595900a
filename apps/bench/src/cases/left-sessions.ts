import { freePorts } from '@zabra/testkit'
import { busyFlags } from '../busy.ts'
import { openSession } from '../open-session.ts'
import { scaled, withNodeFlags, type CaseContext } from './case.ts'
import { watchHolds } from './holds.ts'

/** Sessions whose connections are closed, so that they expire. */
const SESSIONS = 50_000
/** They are opened within a tick, at whose end they expire together. */
const TICK_MS = 60_000
const TIMEOUT_MS = 5000
const OPENED_AT_ONCE = 50
/** Idle servers are measured until so long before the sessions expire. */
const MARGIN_MS = 2000

/** Figures of the command `monitor`; the time since the start is in milliseconds. */
interface Monitor {
  readonly uptime: number
  readonly global_sessions: number
}

/** Measures, on a server of its own, how long sessions without a connection hold the event loop: `rows` are those that are wanted. */
export async function measureLeftSessions(context: CaseContext): Promise<void> {
  const { rows } = context.options
  const count = scaled(context, SESSIONS)
  const [opened, saved, listed, idle, expired] = [
    `${count} sessions that are opened and left`,
    `a snapshot with ${count} sessions`,
    `a dump of ${count} sessions`,
    `nothing, with ${count} sessions, while V8 compacts the heap`,
    `${count} sessions without a connection that expire together`,
  ] as const
  if (rows !== undefined && ![opened, saved, listed, idle, expired].some((row) => rows.test(row))) return
  const [adminPort] = (await freePorts(1)) as [number]
  const peer = await withNodeFlags(context, busyFlags()).start({
    settings: {
      tickTime: String(TICK_MS),
      minSessionTimeout: String(TIMEOUT_MS),
      maxClientCnxns: '0',
      'admin.enableServer': 'true',
      'admin.serverPort': String(adminPort),
    },
  })
  const test = async (row: string, disturbance: () => Promise<unknown>): Promise<void> => {
    const noteHolds = await watchHolds(context, peer, (kind) => `event loop ${kind}: ${row}`)
    await disturbance()
    await noteHolds()
  }
  const read = async (target: string): Promise<void> => {
    await (await fetch(`http://127.0.0.1:${adminPort}${target}`)).arrayBuffer()
  }
  const until = async (isReached: (figures: Monitor) => boolean): Promise<void> => {
    for (;;) {
      const answer = await fetch(`http://127.0.0.1:${adminPort}/commands/monitor`)
      if (isReached((await answer.json()) as Monitor)) return
      await new Promise((resolve) => setTimeout(resolve, 500))
    }
  }
  try {
    await test(opened, async () => {
      const openSome = async (some: number): Promise<void> => {
        for (let i = 0; i < some; i++) (await openSession(peer.ports[0]!, TIMEOUT_MS)).destroy()
      }
      await Promise.all(Array.from({ length: OPENED_AT_ONCE }, () => openSome(count / OPENED_AT_ONCE)))
    })
    await test(saved, () => read('/commands/snapshot?streaming=false'))
    await test(listed, () => read('/commands/dump'))
    // Apart from the expiry: what V8 does after some seconds without load is none of it.
    await test(idle, () => until(({ uptime }) => uptime >= TICK_MS - MARGIN_MS))
    await test(expired, () => until(({ global_sessions: left }) => left === 0))
  } finally {
    await peer.stop()
  }
}
