import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { HEAP_FILE, heapLine, parseMemory, memorySince, type MemorySample } from './heap.ts'

const memory = (at: number, isCollected = false): MemorySample => ({
  at,
  resident: 100,
  young: 20,
  old: 30,
  external: 4,
  used: 25,
  isCollected,
})

const folder = (): string => {
  const path = mkdtempSync(join(tmpdir(), 'zabra-bench-heap-'))
  onTestFinished(() => rmSync(path, { recursive: true }))
  return path
}

it('parseMemory reads back the lines of heapLine', () => {
  const all = [memory(1000), memory(2000, true)]
  expect(parseMemory(all.map(heapLine).join(''))).toEqual(all)
  expect(parseMemory('')).toEqual([])
})

it('parseMemory skips an incomplete last line', () => {
  expect(parseMemory(heapLine(memory(1000)) + heapLine(memory(2000)).slice(0, 12))).toEqual([memory(1000)])
})

it('memorySince returns the samples since a time, or undefined for a server that records none', () => {
  const path = folder()
  expect(memorySince(path, 0)).toBeUndefined()
  writeFileSync(join(path, HEAP_FILE), [memory(1000), memory(2000), memory(3000)].map(heapLine).join(''))
  expect(memorySince(path, 2000)).toEqual([memory(2000), memory(3000)])
})
