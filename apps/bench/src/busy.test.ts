import { appendFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { BUSY_FILE, longestTurn, turnLine, parseTurns, turnsSince, type Turn } from './busy.ts'

const folder = (): string => {
  const path = mkdtempSync(join(tmpdir(), 'zabra-bench-busy-'))
  onTestFinished(() => rmSync(path, { recursive: true }))
  return path
}

const turn = (held: number, busy: number, more: Partial<Turn> = {}): Turn => ({
  at: 1000,
  held,
  busy,
  starved: 0,
  idle: 0,
  ...more,
})

it('parseTurns reads back the lines of turnLine, to a hundredth of a millisecond', () => {
  const waited = { starved: 41.5, idle: 12 }
  expect(parseTurns(turnLine(turn(60, 3.126, waited)) + turnLine(turn(5, 4, { at: 2000 })))).toEqual([
    turn(60, 3.13, waited),
    turn(5, 4, { at: 2000 }),
  ])
  expect(parseTurns('')).toEqual([])
})

it('turnLine caps each part of a turn at its elapsed time', () => {
  expect(parseTurns(turnLine(turn(12, 12.4, { starved: 13, idle: 14 })))).toEqual([
    turn(12, 12, { starved: 12, idle: 12 }),
  ])
})

it('turnLine records only turns above the busy or the held threshold', () => {
  expect(turnLine(turn(3, 0.4))).toBe('')
  expect(turnLine(turn(3, 0.6))).not.toBe('')
  expect(turnLine(turn(40, 0.2))).not.toBe('')
  expect(turnLine(turn(9, 4.9), 5)).toBe('')
  expect(turnLine(turn(9, 5.1), 5)).not.toBe('')
})

it('longestTurn returns the turn with the longest held or busy time', () => {
  const turns = [turn(9, 8), turn(59, 4), turn(7, 6)]
  expect(longestTurn(turns, 'held')).toBe(turns[1])
  expect(longestTurn(turns, 'busy')).toBe(turns[0])
  expect(longestTurn([], 'busy')).toBeUndefined()
})

it('turnsSince returns only the turns recorded after the call', () => {
  const path = folder()
  writeFileSync(join(path, BUSY_FILE), turnLine(turn(90, 80)))
  const turns = turnsSince(path)
  expect(turns()).toEqual([])
  appendFileSync(join(path, BUSY_FILE), turnLine(turn(50, 7.5)))
  expect(turns()).toEqual([turn(50, 7.5)])
  expect(turnsSince(path)()).toEqual([])
})

it('turnsSince returns undefined for a server that records no turns', () => {
  expect(turnsSince(folder())()).toBeUndefined()
})
