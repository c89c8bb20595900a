import { describe, expect, it } from 'vitest'
import { SessionMap } from '../session-map.ts'
import { LearnerSessions } from './index.ts'

const ids = (sessions: readonly { readonly id: bigint }[]): bigint[] => sessions.map(({ id }) => id)

describe('the sessions of a learner', () => {
  it('are those of the table, whether or not their clients are connected here', () => {
    const table = new SessionMap([[1n, 5000]])
    const sessions = new LearnerSessions(table)
    expect([sessions.size, sessions.get(1n)?.timeout, sessions.get(2n)]).toEqual([1, 5000, undefined])
    expect(sessions.get(1n)?.isLocal).toBe(false)
    expect([sessions.isOpen(1n), sessions.isOpen(2n)]).toEqual([true, false])
    const added = sessions.add(2n, 7000, 100)
    expect([added.timeout, added.deadline, table.get(2n)]).toEqual([7000, 0, 7000])
    expect([...sessions].map(({ id, timeout }) => [id, timeout])).toEqual([
      [1n, 5000],
      [2n, 7000],
    ])
    expect(sessions.takeTouched()).toEqual([])
  })

  it('that are resumed here keep one object with the latest timeout and deadline', () => {
    const sessions = new LearnerSessions(new SessionMap())
    const first = sessions.resume(1n, 5000, 100)
    expect([first.timeout, first.deadline, sessions.isOpen(1n)]).toEqual([5000, 5100, true])
    // Its transaction is applied later.
    expect([sessions.add(1n, 6000, 200), sessions.get(1n)]).toEqual([first, first])
    expect([first.timeout, first.deadline]).toEqual([6000, 6200])
    expect(sessions.resume(1n, 4000, 300)).toBe(first)
    expect([first.timeout, first.deadline, [...sessions][0]]).toEqual([4000, 4300, first])
  })

  it('are reported once after they were touched, however often', () => {
    const sessions = new LearnerSessions(new SessionMap())
    const [one, two] = [sessions.resume(1n, 5000, 0), sessions.resume(2n, 5000, 0)]
    sessions.touch(one, 10)
    expect(ids(sessions.takeTouched())).toEqual([1n, 2n])
    expect(sessions.takeTouched()).toEqual([])
    sessions.touch(two, 20)
    expect([ids(sessions.takeTouched()), two.deadline]).toEqual([[2n], 5020])
  })

  it('that an observer reports are passed on once, and not beside a touch here', () => {
    const sessions = new LearnerSessions(new SessionMap([1n, 3n].map((id) => [id, 5000])))
    sessions.resume(1n, 5000, 0)
    sessions.touchFromObserver(1n, 5000)
    sessions.touchFromObserver(3n, 9000)
    sessions.touchFromObserver(3n, 9000)
    expect(sessions.takeTouched().map(({ id, timeout }) => [id, timeout])).toEqual([
      [1n, 5000],
      [3n, 9000],
    ])
    expect(sessions.takeTouched()).toEqual([])
  })

  it('are reported with several answers when they are many, and unknown ones of an observer are not', () => {
    const own = Array.from({ length: 6000 }, (_, i) => BigInt(i))
    const reported = Array.from({ length: 5000 }, (_, i) => BigInt(i + 10_000))
    const sessions = new LearnerSessions(new SessionMap([...own, ...reported].map((id) => [id, 5000])))
    for (const id of own) sessions.resume(id, 5000, 0)
    for (const id of [...reported, ...reported]) sessions.touchFromObserver(id, 5000)
    for (let id = -1000n; id < 0n; id++) sessions.touchFromObserver(id, 5000)
    const first = ids(sessions.takeTouched(2000))
    expect(first).toEqual([...own.slice(0, 1000), ...reported.slice(0, 1000)])
    // Those reported again follow those that were not taken yet.
    sessions.touchFromObserver(10_000n, 5000)
    expect(ids(sessions.takeTouched(2000))).toEqual([...own.slice(1000, 2000), ...reported.slice(1000, 2000)])
    expect(ids(sessions.takeTouched())).toEqual([...own.slice(2000), ...reported.slice(2000), 10_000n])
    expect(sessions.takeTouched()).toEqual([])
  })

  it('that have ended are closed for their clients and not reported', () => {
    const table = new SessionMap([[1n, 5000]])
    const sessions = new LearnerSessions(table)
    const one = sessions.resume(1n, 5000, 0)
    sessions.remove(1n)
    sessions.remove(2n)
    expect([one.isClosing, sessions.isOpen(1n), sessions.get(1n), table.size]).toEqual([
      true,
      false,
      undefined,
      0,
    ])
    expect(sessions.takeTouched()).toEqual([])
  })

  it('that are closing are not open until they are reopened', () => {
    const sessions = new LearnerSessions(new SessionMap())
    const one = sessions.resume(1n, 5000, 0)
    one.isClosing = true
    expect([sessions.isOpen(1n), sessions.takeTouched()]).toEqual([false, []])
    sessions.reopen(one)
    expect(sessions.isOpen(1n)).toBe(true)
  })

  it('whose clients have left live on in the table', () => {
    const sessions = new LearnerSessions(new SessionMap([[1n, 5000]]))
    const one = sessions.resume(1n, 4000, 0)
    sessions.detach(1n)
    expect([sessions.isOpen(1n), sessions.get(1n)?.timeout]).toEqual([true, 5000])
    expect(sessions.get(1n)).not.toBe(one)
  })

  it('never expire here', () => {
    const sessions = new LearnerSessions(new SessionMap([[1n, 1]]))
    expect([sessions.expire(), sessions.nextDeadline]).toEqual([[], Infinity])
  })
})
