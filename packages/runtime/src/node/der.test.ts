import { expect, it } from 'vitest'
import { DerError, DerReader } from './der.ts'

const of = (...bytes: number[]): DerReader => new DerReader(Uint8Array.from(bytes))

it('values are read one after the other, and those inside of them on demand', () => {
  const reader = of(0x30, 3, 0x02, 1, 7, 0x05, 0)
  const inner = reader.enter(0x30)
  expect([inner.nextTag, inner.next(0x02), inner.isAtEnd]).toEqual([0x02, { start: 4, end: 5 }, true])
  expect([reader.next(), reader.nextTag]).toEqual([{ start: 7, end: 7 }, undefined])
})

it('lengths of up to three bytes are read', () => {
  const bytes = new Uint8Array(70_000)
  bytes.set([0x04, 0x83, 0x01, 0x00, 0x00])
  expect(new DerReader(bytes).next()).toEqual({ start: 5, end: 65_541 })
  expect(new DerReader(Uint8Array.of(0x04, 0x81, 0x80, ...new Uint8Array(128))).next()).toEqual({
    start: 3,
    end: 131,
  })
})

it('what is no DER, or another value, is refused', () => {
  for (const reader of [
    of(),
    of(0x30),
    of(0x30, 1),
    of(0x30, 0x80, 0, 0),
    of(0x30, 0x84, 0, 0, 0, 1, 0),
    of(0x30, 0x81, 1, 0),
    of(0x30, 0x82, 0, 0x80, ...new Uint8Array(128)),
    of(0x3f, 0x01, 0),
    of(0x31, 0),
  ])
    expect(() => reader.next(0x30)).toThrow(DerError)
})
