import { BufferPool } from '@zabra/protocol'
import type { Connection } from '@zabra/runtime'
import { describe, expect, it } from 'vitest'
import { PieceWriter } from '../core/piece-writer.ts'
import { FlowControl, PauseReason } from './flow-control.ts'

const noSends = { sends: { add() {} }, onSent() {} }

/** Makes a flow to a socket that checks the bytes it gets, and whose room the test sets. */
function flowOf() {
  const socket = { hasRoom: true, got: [] as number[], bytes: 0, isEnded: false, reports: 0 }
  const steps: (() => boolean)[] = []
  const wire = {
    bufferedBytes: 0,
    resume() {},
    write(bytes: Uint8Array) {
      expect(bytes.every((byte, i) => byte === ((socket.bytes + i) & 255))).toBe(true)
      socket.bytes += bytes.length
      socket.got.push(bytes.length)
      return socket.hasRoom
    },
    end: () => void (socket.isEnded = true),
    destroy() {},
  }
  const sends = { add: (step: () => boolean) => void steps.push(step) }
  const flow = new FlowControl(wire as Partial<Connection> as Connection, {
    sends,
    onSent: () => void socket.reports++,
  })
  const runStep = (): void => {
    const step = steps.shift()!
    if (step()) steps.push(step)
  }
  return { flow, wire, socket, steps, runStep }
}

const counted = (from: number, length: number): Uint8Array =>
  new Uint8Array(length).map((_, i) => (from + i) & 255)

/** Makes a connection that records its calls. */
function recordingConnection(canReuseBuffers?: boolean) {
  const calls: string[] = []
  const wire: Partial<Connection> = {
    ...(canReuseBuffers === undefined ? {} : { canReuseBuffers }),
    bufferedBytes: 0,
    pause: () => void calls.push('pause'),
    resume: () => void calls.push('resume'),
    write: (bytes: Uint8Array) => (calls.push(`write ${bytes.length}`), true),
  }
  return { wire: wire as Connection, calls }
}

describe('FlowControl', () => {
  it('resumes the connection once every reason to pause is gone, however often each was given', () => {
    const { wire, calls } = recordingConnection()
    const flow = new FlowControl(wire, noSends)
    flow.pause(PauseReason.backlog)
    flow.pause(PauseReason.overload)
    flow.pause(PauseReason.overload)
    expect(flow.isPausedFor(PauseReason.overload)).toBe(true)
    expect(flow.isPausedFor(PauseReason.session)).toBe(false)
    flow.resume(PauseReason.session)
    flow.resume(PauseReason.backlog)
    expect(calls).toEqual(['pause'])
    flow.resume(PauseReason.overload)
    flow.resume(PauseReason.overload)
    expect(calls).toEqual(['pause', 'resume'])
    expect(flow.isPausedFor(PauseReason.overload)).toBe(false)
  })

  it('empties a writer, and returns its buffer to the pool only when the connection has copied the bytes', () => {
    for (const canReuseBuffers of [true, false, undefined]) {
      const { wire, calls } = recordingConnection(canReuseBuffers)
      const pool = new BufferPool()
      const writer = new PieceWriter(16, pool)
      writer.int(7)
      new FlowControl(wire, noSends).flushWriter(writer)
      const freeBytes = canReuseBuffers === true ? 512 : 0
      expect([calls, writer.length, pool.freeBytes]).toEqual([['write 4'], 0, freeBytes])
    }
  })

  it('hands at most 256 KiB at once to the socket, the rest in later turns, and ends the connection behind them', () => {
    const { flow, socket, steps, runStep } = flowOf()
    flow.send(counted(0, 600_000))
    expect([socket.got, flow.isBackpressured, flow.unsentBytes]).toEqual([[262_144], true, 337_856])
    flow.send(counted(600_000, 10))
    flow.end()
    runStep()
    expect([socket.got.length, flow.isBackpressured, socket.isEnded]).toEqual([2, true, false])
    runStep()
    expect(socket.got.slice(2)).toEqual([75_712, 10])
    expect([flow.isBackpressured, flow.unsentBytes, socket.isEnded]).toEqual([false, 0, true])
    expect([steps.length, socket.reports]).toEqual([0, 2])
  })

  it('hands nothing to a full socket before it reports that it has sent its bytes', () => {
    const { flow, socket, steps, runStep } = flowOf()
    socket.hasRoom = false
    flow.send(counted(0, 300_000))
    flow.send(counted(300_000, 5))
    expect([socket.got, steps.length]).toEqual([[262_144], 0])
    socket.hasRoom = true
    expect([flow.drained(), flow.isBackpressured]).toEqual([false, true])
    runStep()
    expect([socket.got.slice(1), flow.isBackpressured, flow.drained()]).toEqual([[37_856, 5], false, true])
  })

  it('waits behind a small reply that the socket has not taken', () => {
    const { flow, socket } = flowOf()
    const writer = new PieceWriter(16)
    writer.raw(counted(0, 4))
    socket.hasRoom = false
    flow.flushWriter(writer)
    flow.send(counted(4, 10))
    expect([socket.got, flow.isBackpressured]).toEqual([[4], true])
    socket.hasRoom = true
    expect(flow.drained()).toBe(false)
  })

  it('sends what is attached to a writer in its place', () => {
    const { flow, socket, runStep } = flowOf()
    const writer = new PieceWriter(16)
    writer.raw(counted(0, 3))
    writer.attach(counted(3, 300_000))
    writer.raw(counted(300_003, 2))
    flow.flushWriter(writer)
    runStep()
    expect([socket.got, writer.length]).toEqual([[3, 262_141, 37_859, 2], 0])
  })

  it('counts an array whose begin is sent as held, until its last bytes are', () => {
    const { flow, wire, socket, runStep } = flowOf()
    const writer = new PieceWriter(16)
    writer.attach(counted(0, 600_000))
    writer.raw(counted(600_000, 8))
    flow.flushWriter(writer)
    expect([flow.unsentBytes, flow.sentBytesHeld]).toEqual([337_864, 262_144])
    runStep()
    expect([flow.unsentBytes, flow.sentBytesHeld]).toEqual([75_720, 524_288])
    runStep()
    wire.bufferedBytes = 75_720
    expect([flow.unsentBytes, flow.sentBytesHeld]).toEqual([75_720, 524_288])
    wire.bufferedBytes = 0
    expect([flow.unsentBytes, flow.sentBytesHeld]).toEqual([0, 0])
    writer.raw(counted(600_008, 4))
    flow.flushWriter(writer)
    wire.bufferedBytes = 4
    expect([flow.unsentBytes, flow.sentBytesHeld, socket.bytes]).toEqual([4, 0, 600_012])
  })

  it('hands nothing to a socket after destroy', () => {
    const { flow, socket, runStep } = flowOf()
    flow.send(counted(0, 600_000))
    flow.destroy()
    runStep()
    expect([socket.got.length, socket.reports, flow.unsentBytes]).toEqual([1, 0, 0])
  })
})
