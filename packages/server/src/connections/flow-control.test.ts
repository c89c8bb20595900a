import { BufferPool, Writer } from '@zabra/protocol'
import type { Connection } from '@zabra/runtime'
import { describe, expect, it } from 'vitest'
import { FlowControl, PauseReason } from './flow-control.ts'

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
    const flow = new FlowControl(wire)
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
      const writer = new Writer(16, pool)
      writer.int(7)
      new FlowControl(wire).flushWriter(writer)
      const freeBytes = canReuseBuffers === true ? 512 : 0
      expect([calls, writer.length, pool.freeBytes]).toEqual([['write 4'], 0, freeBytes])
    }
  })
})
