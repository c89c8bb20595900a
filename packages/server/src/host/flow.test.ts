import type { Connection } from '@zabra/runtime'
import { Rooms, Writer } from '@zabra/protocol'
import { expect, it } from 'vitest'
import { Flow, Hindrance } from './flow.ts'

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
  const flow = new Flow(wire)
  flow.hinder(Hindrance.backlog)
  flow.hinder(Hindrance.overload)
  flow.hinder(Hindrance.overload)
  expect([flow.isHindered(Hindrance.overload), flow.isHindered(Hindrance.session)]).toEqual([true, false])
  flow.clear(Hindrance.session)
  flow.clear(Hindrance.backlog)
  expect(told).toEqual(['pause'])
  flow.clear(Hindrance.overload)
  flow.clear(Hindrance.overload)
  expect(told).toEqual(['pause', 'resume'])
  expect(flow.isHindered(Hindrance.overload)).toBe(false)
})

it('leaves a writer empty, and its array to whoever needs it only when the connection has copied the bytes', () => {
  for (const copied of [true, false, undefined]) {
    const { wire, told } = noting(copied)
    const rooms = new Rooms()
    const writer = new Writer(16, rooms)
    writer.int(7)
    new Flow(wire).sendFrom(writer)
    expect([told, writer.length, rooms.kept]).toEqual([['write 4'], 0, copied === true ? 512 : 0])
  }
})
