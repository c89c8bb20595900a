import { OpCode } from '@zabra/protocol'
import { describe, expect, it } from 'vitest'
import { LearnerRequestOrder } from './learner-request-order.ts'

/** An order of requests whose syncs end when the test says so. */
class OrderFixture {
  readonly done: string[] = []
  /** Ends the syncs that were passed on, by their number. */
  readonly endSync: (() => void)[] = []
  readonly #later: (() => void)[] = []
  readonly order = new LearnerRequestOrder({
    now: () => 0,
    runLater: (action) => void this.#later.push(action),
    sync: (_, synced) => void this.endSync.push(synced),
    process: (_, { xid }) => void this.done.push(`request ${xid}`),
  })

  submit(learner: object, xid: number, type: number = OpCode.setData): void {
    this.order.submit(learner, { sessionId: 1n, xid, type, body: new Uint8Array(0), identities: [] })
  }

  sync(learner: object): void {
    this.submit(learner, 0, OpCode.sync)
  }

  run(learner: object, name: string): void {
    this.order.runInOrder(learner, () => void this.done.push(name))
  }

  /** Runs the next turn, and returns what it has done. */
  turn(): string[] {
    this.#later.shift()?.()
    return this.takeDone()
  }

  takeDone(): string[] {
    return this.done.splice(0)
  }
}

describe('LearnerRequestOrder', () => {
  it('runs an action after all waiting requests of the learner, and before later ones', () => {
    const [fixture, learner] = [new OrderFixture(), {}]
    fixture.run(learner, 'first action')
    fixture.sync(learner)
    fixture.run(learner, 'second action')
    fixture.submit(learner, 2)
    fixture.run(learner, 'third action')
    fixture.submit(learner, 3)
    expect(fixture.takeDone()).toEqual(['first action', 'second action'])
    fixture.endSync[0]!()
    expect(fixture.takeDone()).toEqual(['request 2', 'third action', 'request 3'])
    fixture.submit(learner, 4)
    expect(fixture.takeDone()).toEqual(['request 4'])
  })

  it('holds requests until the last of several syncs is done, and a sync behind them too', () => {
    const [fixture, learner] = [new OrderFixture(), {}]
    for (let i = 0; i < 2; i++) fixture.sync(learner)
    fixture.submit(learner, 1)
    fixture.sync(learner)
    fixture.submit(learner, 2)
    expect(fixture.endSync).toHaveLength(2)
    fixture.endSync[1]!()
    expect(fixture.takeDone()).toEqual([])
    fixture.endSync[0]!()
    expect([fixture.takeDone(), fixture.endSync.length]).toEqual([['request 1'], 3])
    fixture.endSync[2]!()
    expect(fixture.takeDone()).toEqual(['request 2'])
  })

  it('passes on a hundred of the requests behind a sync in a turn, and later ones behind them', () => {
    const [fixture, learner] = [new OrderFixture(), {}]
    fixture.sync(learner)
    for (let cxid = 1; cxid <= 250; cxid++) fixture.submit(learner, cxid)
    fixture.endSync[0]!()
    const turns = [fixture.takeDone()]
    fixture.submit(learner, 251)
    fixture.run(learner, 'action')
    turns.push(fixture.turn(), fixture.turn(), fixture.turn())
    fixture.submit(learner, 252)
    turns.push(fixture.takeDone())
    expect(turns.map((items) => items.length)).toEqual([100, 100, 52, 0, 1])
    const requests = Array.from({ length: 251 }, (_, index) => `request ${index + 1}`)
    expect(turns.flat()).toEqual([...requests, 'action', 'request 252'])
  })

  it('stops at a sync among the requests that wait, also where its end comes in a later turn', () => {
    const [fixture, learner] = [new OrderFixture(), {}]
    fixture.sync(learner)
    for (let cxid = 1; cxid <= 150; cxid++) fixture.submit(learner, cxid)
    fixture.sync(learner)
    fixture.submit(learner, 151)
    fixture.endSync[0]!()
    expect([
      fixture.takeDone().length,
      fixture.turn().length,
      fixture.turn(),
      fixture.endSync.length,
    ]).toEqual([100, 50, [], 2])
    fixture.endSync[1]!()
    expect([fixture.takeDone(), fixture.turn()]).toEqual([['request 151'], []])
  })

  it('passes on nothing more of a learner that is removed meanwhile', () => {
    const [fixture, learner] = [new OrderFixture(), {}]
    fixture.sync(learner)
    for (let cxid = 1; cxid <= 150; cxid++) fixture.submit(learner, cxid)
    fixture.endSync[0]!()
    fixture.order.remove(learner)
    fixture.takeDone()
    expect(fixture.turn()).toEqual([])
  })

  it('does not hold the requests of another learner', () => {
    const [fixture, learner, other] = [new OrderFixture(), {}, {}]
    fixture.sync(learner)
    fixture.submit(other, 1)
    fixture.run(other, 'action')
    expect(fixture.takeDone()).toEqual(['request 1', 'action'])
  })

  it('drops the waiting requests of a removed learner, whose sync releases none of its next connection', () => {
    const [fixture, learner] = [new OrderFixture(), {}]
    fixture.sync(learner)
    fixture.submit(learner, 1)
    fixture.order.remove(learner)
    fixture.sync(learner)
    fixture.submit(learner, 2)
    fixture.endSync[0]!()
    expect(fixture.takeDone()).toEqual([])
    fixture.endSync[1]!()
    expect(fixture.takeDone()).toEqual(['request 2'])
  })

  it('drops everything that waits when it is cleared', () => {
    const [fixture, learner] = [new OrderFixture(), {}]
    fixture.sync(learner)
    fixture.submit(learner, 1)
    fixture.order.clear()
    fixture.endSync[0]!()
    fixture.submit(learner, 2)
    expect(fixture.takeDone()).toEqual(['request 2'])
  })

  it('runs the actions behind the requests of a learner that is removed, each once, and drops the requests', () => {
    const [fixture, learner] = [new OrderFixture(), {}]
    fixture.sync(learner)
    for (let cxid = 1; cxid <= 99; cxid++) fixture.submit(learner, cxid)
    fixture.run(learner, 'first action')
    fixture.submit(learner, 100)
    fixture.run(learner, 'second action')
    fixture.endSync[0]!()
    expect(fixture.takeDone()).toHaveLength(100)
    fixture.order.remove(learner)
    expect([fixture.takeDone(), fixture.turn()]).toEqual([['second action'], []])
  })
})
