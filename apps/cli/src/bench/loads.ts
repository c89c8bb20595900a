import { pingInTurns } from './heartbeats.ts'
import { Histogram } from './histogram.ts'
import { keyPath, type Control, type Mode, type LoadTarget, type ProcessShare } from './plan.ts'
import { pace } from './pace.ts'
import { pump, type PumpOptions } from './pump.ts'
import type { RawSession } from './raw-session.ts'
import type { PartResult } from './result.ts'
import { closeSessions, openSessions } from './sessions.ts'

/** Runs a load on the connections of one process. */
export type Load = (share: ProcessShare, target: LoadTarget, control: Control) => Promise<PartResult[]>

/** Number of concurrent session handshakes. */
const CONCURRENT_HANDSHAKES = 64
const noProgress = { progress(): void {} }
const dataOf = ({ size }: ProcessShare): Uint8Array => new Uint8Array(size).fill(120)
const seconds = (from: number, to = performance.now()): number => (to - from) / 1000

/** Opens the sessions of a process, runs `body` and closes them, also on failure. */
async function withSessions<T>(
  share: ProcessShare,
  target: LoadTarget,
  control: Control,
  body: (sessions: readonly RawSession[]) => Promise<T>,
): Promise<T> {
  const options = {
    first: share.first,
    count: share.ownConnections,
    concurrency: CONCURRENT_HANDSHAKES,
    data: dataOf(share),
  }
  const sessions = await openSessions(target, options, { ...control, ...noProgress })
  let result: T
  try {
    await control.barrier(0)
    result = await body(sessions)
  } catch (error) {
    for (const session of sessions) session.destroy()
    throw error
  }
  await closeSessions(sessions)
  return result
}

/** Sends requests on all connections for `seconds`: of one kind, or reads and writes. */
const steady: Load = (share, target, control) =>
  withSessions(share, target, control, async (sessions) => {
    const latency = new Histogram()
    let [isMeasuring, isFinished, operations] = [false, false, 0]
    const counted = { add: (value: number): void => (isMeasuring ? latency.add(value) : undefined) }
    const options = (session: RawSession, at: number): PumpOptions => ({
      depth: share.depth,
      latency: counted,
      what: share.mode === 'mixed' ? 'a request' : `${share.mode} request`,
      signal: control.signal,
      onReply: () => {
        if (isMeasuring) operations++
        control.progress(1)
      },
      send: (index) => !isFinished && (sendRequest(share, session, share.first + at, index), true),
    })
    const loads = sessions.map((session, at) =>
      share.rate > 0
        ? pace(session, {
            ...options(session, at),
            perSecond: share.rate / share.connections,
            phase: (share.first + at) / share.connections,
          })
        : pump(session, options(session, at)),
    )
    const all = Promise.all(loads)
    await waitAtMost(all, share.seconds * 250)
    isMeasuring = true
    const began = performance.now()
    await waitAtMost(all, share.seconds * 1000)
    isMeasuring = false
    const took = seconds(began)
    isFinished = true
    await all
    return [{ name: share.mode, operations, seconds: took, latency: latency.export() }]
  })

/** Waits for `ms`, or until the load has failed or ended. */
function waitAtMost(load: Promise<unknown>, ms: number): Promise<unknown> {
  return Promise.race([load, new Promise((resolve) => setTimeout(resolve, ms))])
}

function sendRequest(share: ProcessShare, session: RawSession, connection: number, index: number): void {
  if (share.mode === 'create') return session.create(`${share.root}/new-${connection}-${index}`)
  const path = keyPath(share, (connection + index * share.connections) % share.keys)
  // Interleaves reads and writes evenly: of any 100 requests in a row, `reads` are reads.
  const reads = share.mode === 'get' || (share.mode === 'mixed' && (index * 37) % 100 < share.reads)
  if (reads) session.get(path)
  else session.set(path)
}

/** Returns a monotonic time in milliseconds that all processes of the machine share. */
const now = (): number => Number(process.hrtime.bigint()) / 1e6
const FINISHED = -1

/** Measures the time from a write to its last notification, with every connection but the first watching the node. */
const fanOut: Load = (share, target, control) =>
  withSessions(share, target, control, async (sessions) => {
    const latency = new Histogram()
    const node = keyPath(share, 0)
    const isFirst = share.first === 0
    const [writer, watchers] = isFirst ? [sessions[0], sessions.slice(1)] : [undefined, sessions]
    const began = performance.now()
    let rounds = 0
    for (;;) {
      // The first process decides when to finish.
      const [first] = await control.barrier(rounds > 0 && seconds(began) >= share.seconds ? FINISHED : 0)
      if (first === FINISHED) break
      await requestOnEach(watchers, (session) => session.watch(node), control)
      let [at, last] = [0, 0]
      const write = async (): Promise<void> => {
        await control.barrier(0)
        at = now()
        if (writer !== undefined) await requestOnEach([writer], (session) => session.set(node), control)
      }
      // Concurrently: a watcher may fail while this process waits at the barrier.
      await Promise.all([allNotified(watchers, 1).then(() => (last = now())), write()])
      latency.add((Math.max(...(await control.barrier(last))) - at) * 1000)
      control.progress(watchers.length)
      rounds++
    }
    if (!isFirst) return []
    const time = latency.export()
    const name = `write until ${share.connections - 1} watchers are notified`
    return [{ name, operations: rounds, seconds: time.sum / 1e6, latency: time }]
  })

/** Sends one request on each session and waits for the replies. */
async function requestOnEach(
  sessions: readonly RawSession[],
  ask: (session: RawSession) => void,
  { signal }: Control,
): Promise<void> {
  const send = (session: RawSession) => (index: number) => index === 0 && (ask(session), true)
  const one = { depth: 1, latency: new Histogram(), what: 'a request', signal }
  await Promise.all(sessions.map((session) => pump(session, { ...one, send: send(session) })))
}

/** Opens many sessions at once. */
const connectStorm: Load = async (share, target, control) => {
  const latency = new Histogram()
  await control.barrier(0)
  const began = performance.now()
  const options = {
    first: share.first,
    count: share.ownConnections,
    concurrency: share.depth,
    data: dataOf(share),
    latency,
  }
  const sessions = await openSessions(target, options, control)
  const took = seconds(began)
  await closeSessions(sessions)
  return [{ name: 'session', operations: sessions.length, seconds: took, latency: latency.export() }]
}

/** Holds idle sessions with watches that never fire. */
const holdSessions: Load = (share, target, control) =>
  withSessions(share, target, control, async (sessions) => {
    control.note(`${sessions.length} sessions are open`)
    const endPings = pingInTurns(sessions, target.timeoutMs / 3)
    try {
      const latency = new Histogram()
      const began = performance.now()
      for (const [at, session] of sessions.entries())
        await pump(session, {
          depth: 256,
          latency,
          what: 'watch',
          signal: control.signal,
          allowMissing: true,
          send: (index) => index < share.watches && (watchMissingNode(share, session, at, index), true),
        })
      const [count, took] = [share.watches * sessions.length, seconds(began)]
      control.note(`${count} watches are set`)
      for (const session of sessions) session.onReply = () => {}
      await new Promise<void>((resolve, reject) => {
        setTimeout(resolve, share.seconds * 1000)
        for (const session of sessions) session.onFailure = reject
        control.signal.addEventListener('abort', () => reject(control.signal.reason as Error), { once: true })
      })
      return [{ name: 'watch', operations: count, seconds: took, latency: latency.export() }]
    } finally {
      endPings()
    }
  })

/** Sets a watch on a node that does not exist. */
function watchMissingNode(
  { root, first }: ProcessShare,
  session: RawSession,
  at: number,
  index: number,
): void {
  session.watch(`${root}/watched-${first + at}-${index}`)
}

/** Watches per node in the classic load. */
const WATCHES = 5

/** Runs one phase per operation: create, set, get, delete, create ephemeral, watch, and delete with notifications. */
const classic: Load = (share, target, control) =>
  withSessions(share, target, control, async (sessions) => {
    const { count, root, depth } = share
    const parts: PartResult[] = []
    const path = (at: number, index: number): string => `${root}/client-${share.first + at}-${index}`
    const phase = async (
      name: string,
      operations: number,
      ask: (session: RawSession, at: number, index: number) => void,
    ): Promise<void> => {
      const latency = new Histogram()
      const began = performance.now()
      await Promise.all(
        sessions.map((session, at) =>
          pump(session, {
            depth,
            latency,
            what: name,
            signal: control.signal,
            onReply: () => control.progress(1),
            send: (index) => index < operations && (ask(session, at, index), true),
          }),
        ),
      )
      const took = seconds(began)
      parts.push({ name, operations: operations * sessions.length, seconds: took, latency: latency.export() })
    }
    const began = performance.now()
    await phase('create', count, (session, at, index) => session.create(path(at, index)))
    await phase('set', count, (session, at, index) => session.set(path(at, index)))
    await phase('get', count, (session, at, index) => session.get(path(at, index)))
    await phase('delete', count, (session, at, index) => session.delete(path(at, index)))
    await phase('create ephemeral', count, (session, at, index) => session.create(path(at, index), true))
    await phase('watch', count * WATCHES, (session, at, index) =>
      session.watch(path(at, Math.floor(index / WATCHES))),
    )
    const notified = allNotified(sessions, count)
    await phase('delete watched', count, (session, at, index) => session.delete(path(at, index)))
    await notified
    const operations = parts.reduce((sum, part) => sum + part.operations, 0)
    const whole = { name: 'all', operations, seconds: seconds(began), latency: new Histogram().export() }
    return [...parts, whole]
  })

/** Resolves when each session has received `times` notifications. */
async function allNotified(sessions: readonly RawSession[], times: number): Promise<void> {
  await Promise.all(
    sessions.map(
      (session) =>
        new Promise<void>((resolve, reject) => {
          let left = times
          session.onFailure = reject
          session.onNotification = () => (--left === 0 ? resolve() : undefined)
        }),
    ),
  )
}

export const loads: Readonly<Record<Mode, Load>> = {
  get: steady,
  set: steady,
  create: steady,
  mixed: steady,
  watch: fanOut,
  connect: connectStorm,
  hold: holdSessions,
  classic,
}
