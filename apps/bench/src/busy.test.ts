import { appendFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { BUSY_FILE, busyLine, busySince, longestBusy } from './busy.ts'

const folder = (): string => {
  const path = mkdtempSync(join(tmpdir(), 'zabra-bench-busy-'))
  onTestFinished(() => rmSync(path, { recursive: true }))
  return path
}

it('counts of a gap only what the thread ran, and never more than the gap', () => {
  expect(busyLine(60, 3.126)).toBe('3.13\n')
  expect(busyLine(12, 12.4)).toBe('12.00\n')
})

it('writes nothing of a gap in which the thread hardly ran', () => {
  expect(busyLine(40, 0.2)).toBe('')
})

it('finds the longest of what was written, and 0 of nothing', () => {
  expect(longestBusy('3.13\n12.00\n0.75\n')).toBe(12)
  expect(longestBusy('')).toBe(0)
})

it('tells the longest since it began to look', () => {
  const path = folder()
  writeFileSync(join(path, BUSY_FILE), busyLine(90, 80))
  const longest = busySince(path)
  expect(longest()).toBe(0)
  appendFileSync(join(path, BUSY_FILE), busyLine(50, 7.5) + busyLine(50, 2))
  expect(longest()).toBe(7.5)
  expect(busySince(path)()).toBe(0)
})

it('tells nothing of a server that writes nothing down', () => {
  expect(busySince(folder())()).toBeUndefined()
})
