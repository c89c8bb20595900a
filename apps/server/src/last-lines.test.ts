import { expect, it } from 'vitest'
import { KeptLines } from './last-lines.ts'

it('keeps the last thousand lines, the oldest first', () => {
  const lines = new KeptLines()
  expect([...lines]).toEqual([])
  for (let i = 0; i < 3; i++) lines.add(`${i}\n`)
  expect([...lines]).toEqual(['0', '1', '2'])
  for (let i = 3; i < 2500; i++) lines.add(`${i}\n`)
  expect([...lines]).toEqual(Array.from({ length: 1000 }, (_, i) => String(1500 + i)))
})

it('keeps fewer lines where they are long, of a mebibyte at most', () => {
  const lines = new KeptLines()
  for (let i = 0; i < 700; i++) lines.add(`${String(i).padEnd(5000, 'x')}\n`)
  const kept = [...lines]
  expect(kept.map((line) => Number.parseInt(line, 10))).toEqual(
    Array.from({ length: kept.length }, (_, i) => 700 - kept.length + i),
  )
  const chars = kept.reduce((sum, line) => sum + line.length, 0)
  expect(chars * 2).toBeLessThanOrEqual(lines.bytes)
  expect(chars * 2).toBeGreaterThan(lines.bytes - 20_000)
  for (let i = 0; i < 3; i++) lines.add('short')
  expect([...lines].slice(-4)).toEqual([kept.at(-1), 'short', 'short', 'short'])
})

it('keeps the start of a line of a megabyte', () => {
  const lines = new KeptLines()
  lines.add('first')
  lines.add('x'.repeat(1_000_000))
  expect([...lines].map(({ length }) => length)).toEqual([5, 16_385])
})
