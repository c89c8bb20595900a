import { expect, it } from 'vitest'
import { RecentChecksums } from './recent-checksums.ts'

it('RecentChecksums returns the checksums of the last 16,384 transactions, over any epochs', () => {
  const recent = new RecentChecksums()
  const all = new Map<number, number>()
  let zxid = 5
  for (let i = 0; i < 40_000; i++) {
    zxid += i % 7 === 0 ? 0x1_0000_0000 : 1 + (i % 3)
    recent.add(zxid, (i * 2654435761) >>> 0)
    all.set(zxid, (i * 2654435761) >>> 0)
  }
  expect(recent.last).toBe(zxid)
  const known = [...all].slice(-16_384)
  for (const [one, sum] of known) expect(recent.checksumOf(one)).toBe(sum)
  expect(recent.checksumOf([...all.keys()].at(-16_385)!)).toBeUndefined()
  expect(recent.checksumOf(zxid + 1)).toBeUndefined()
  expect(recent.checksumOf(4)).toBeUndefined()
})

it('RecentChecksums keeps the first checksum of a repeated transaction', () => {
  const recent = new RecentChecksums()
  expect(recent.last).toBe(-1)
  expect(recent.checksumOf(1)).toBeUndefined()
  for (const zxid of [1, 2, 3, 2, 3]) recent.add(zxid, zxid * 10)
  expect([1, 2, 3].map((zxid) => recent.checksumOf(zxid))).toEqual([10, 20, 30])
})

it('RecentChecksums takes no entry that is not above all earlier ones', () => {
  const recent = new RecentChecksums()
  for (const sum of [20, 21, 22]) recent.add(2, sum)
  expect(recent.checksumOf(2)).toBe(20)
  for (let zxid = 3; zxid <= 40; zxid++) recent.add(zxid, zxid)
  for (const zxid of [30, 5, 17, 1]) recent.add(zxid, 1000)
  expect(recent.last).toBe(40)
  for (let zxid = 3; zxid <= 40; zxid++) expect(recent.checksumOf(zxid)).toBe(zxid)
  expect(recent.checksumOf(1)).toBeUndefined()
})
