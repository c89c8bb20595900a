import { expect, it } from 'vitest'
import { HandshakeQueue, type Handshake, type HandshakeScheduler } from './handshake-queue.ts'

/** An event loop whose turns are run by the test. Each start of a handshake takes `startMs`. */
class Loop implements HandshakeScheduler {
  time = 0
  startMs = 1
  readonly started: string[] = []
  readonly abandoned: string[] = []
  #later: (() => void)[] = []
  #timers: { readonly at: number; readonly action: () => void }[] = []
  readonly queue = new HandshakeQueue(this)

  now(): number {
    return this.time
  }
  runLater(action: () => void): void {
    this.#later.push(action)
  }
  afterStart(action: () => void): void {
    action()
  }
  after(ms: number, action: () => void): void {
    this.#timers.push({ at: this.time + ms, action })
  }

  /** Runs one turn. Returns how many handshakes it has started. */
  turn(): number {
    const before = this.started.length
    for (const action of this.#later.splice(0)) action()
    return this.started.length - before
  }

  /** Runs turns and timers for so many milliseconds. */
  run(ms: number): void {
    for (const end = this.time + ms; this.time < end; this.time++) {
      const due = this.#timers.filter(({ at }) => at <= this.time)
      this.#timers = this.#timers.filter(({ at }) => at > this.time)
      for (const { action } of due) action()
      this.turn()
    }
  }

  add(host: string, count = 1, places = 1): Handshake[] {
    return Array.from({ length: count }, (_, i) => {
      const handshake: Handshake = {
        host,
        places,
        start: () => {
          this.started.push(host)
          this.time += this.startMs
        },
        abandon: () => {
          this.abandoned.push(`${host} ${i}`)
          this.queue.remove(handshake, { failedAfterBytes: 500 })
        },
      }
      this.queue.add(handshake)
      return handshake
    })
  }
}

it('a turn starts as many handshakes as fit into its time, however many clients have connected', () => {
  const loop = new Loop()
  loop.add('a', 30)
  expect(loop.started).toEqual([])
  expect([loop.turn(), loop.turn(), loop.turn()]).toEqual([3, 3, 3])
  loop.startMs = 5
  expect([loop.turn(), loop.turn()]).toEqual([1, 1])
})

it('the address with many handshakes does not delay that of another by more than one', () => {
  const loop = new Loop()
  loop.add('flood', 30)
  loop.turn()
  loop.add('honest')
  loop.turn()
  expect(loop.started.indexOf('honest')).toBeLessThanOrEqual(4)
})

it('an address has 32 places at once and all have 64, so that as few second messages can arrive in one turn', () => {
  const loop = new Loop()
  loop.startMs = 0
  const [first] = loop.add('a', 40)
  loop.turn()
  expect(loop.started).toHaveLength(32)
  loop.queue.remove(first!)
  expect(loop.turn()).toBe(1)
  for (const host of ['b', 'c']) loop.add(host, 40)
  expect(loop.turn()).toBe(32)
})

it('a client that has to send a second ClientHello takes the places of sixteen', () => {
  const loop = new Loop()
  loop.startMs = 0
  loop.add('a', 5, 16)
  loop.add('b', 5, 16)
  loop.add('c', 5, 16)
  expect(loop.turn()).toBe(4)
  expect(loop.started.toSorted()).toEqual(['a', 'a', 'b', 'c'])
})

it('handshakes that are held open lose their places after a second, when others wait and not before', () => {
  const loop = new Loop()
  loop.startMs = 0
  loop.add('idle', 32)
  loop.run(5000)
  expect(loop.abandoned).toEqual([])
  loop.add('idle')
  loop.run(60)
  expect(loop.abandoned).toEqual(['idle 0'])
  loop.run(100)
  expect(loop.started).toHaveLength(33)
})

it('handshakes that are held open by two addresses lose their places to a third one', () => {
  const loop = new Loop()
  loop.startMs = 0
  for (const host of ['a', 'b']) loop.add(host, 32)
  loop.run(500)
  loop.add('honest')
  loop.run(400)
  expect(loop.started).not.toContain('honest')
  loop.run(300)
  expect(loop.started).toContain('honest')
})

it('a failed handshake delays the next one of its address by 50 ms for each KiB that it has sent, and no other address', () => {
  const loop = new Loop()
  const [failed] = loop.add('a')
  loop.turn()
  loop.queue.remove(failed!, { failedAfterBytes: 4096 })
  loop.add('a')
  loop.add('b')
  loop.run(150)
  expect(loop.started).toEqual(['a', 'b'])
  loop.run(150)
  expect(loop.started).toEqual(['a', 'b', 'a'])
})

it('a handshake that fails after a long chain of certificates closes the others of its address that have begun', () => {
  const loop = new Loop()
  loop.startMs = 0
  const [first] = loop.add('a', 8, 4)
  loop.add('b')
  loop.turn()
  loop.queue.remove(first!, { failedAfterBytes: 90_000 })
  expect(loop.abandoned).toHaveLength(7)
  expect(loop.abandoned.join()).not.toContain('b')
})

it('a handshake whose connection closes while it waits is not started', () => {
  const loop = new Loop()
  const [first] = loop.add('a', 2)
  loop.queue.remove(first!, { failedAfterBytes: 300 })
  loop.run(10)
  expect(loop.started).toHaveLength(1)
})
