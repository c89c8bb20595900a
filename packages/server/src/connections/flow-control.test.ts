import type { Connection } from '@zabra/runtime'
import { BufferPool, Writer } from '@zabra/protocol'
import { expect, it } from 'vitest'
import { FlowControl, PauseReason } from './flow-control.ts'

/** A connection that notes what it is told. */
function noting(copied?: boolean): { readonly wire: Connection; readonly told: string[] } {
  const told: string[] = []
  const wire = {
    copied,
    buffered: 0,
    pause: () => told.push('pause'),
    resume: () => told.push('resume'),
    write: (bytes: Uint8Array) => (told.push(`write ${bytes.length}`), true),
  } as unknown as Connection
  return { wire, told }
}

it('reads on only when nothing hinders any more, and says each hindrance once', () => {
  const { wire, told } = noting()
  const flow = new FlowControl(wire)
  flow.pause(PauseReason.backlog)
  flow.pause(PauseReason.overload)
  flow.pause(PauseReason.overload)
  expect([flow.isPausedFor(PauseReason.overload), flow.isPausedFor(PauseReason.session)]).toEqual([
    true,
    false,
  ])
  flow.resume(PauseReason.session)
  flow.resume(PauseReason.backlog)
  expect(told).toEqual(['pause'])
  flow.resume(PauseReason.overload)
  flow.resume(PauseReason.overload)
  expect(told).toEqual(['pause', 'resume'])
  expect(flow.isPausedFor(PauseReason.overload)).toBe(false)
})

it('leaves a writer empty, and its array to whoever needs it only when the connection has copied the bytes', () => {
  for (const copied of [true, false, undefined]) {
    const { wire, told } = noting(copied)
    const rooms = new BufferPool()
    const writer = new Writer(16, rooms)
    writer.int(7)
    new FlowControl(wire).flushWriter(writer)
    expect([told, writer.length, rooms.freeBytes]).toEqual([['write 4'], 0, copied === true ? 512 : 0])
  }
})
