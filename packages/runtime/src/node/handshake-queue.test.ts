import { expect, it } from 'vitest'
import { AddressRecords } from './address-records.ts'
import { HandshakeQueue, type Handshake, type HandshakeScheduler } from './handshake-queue.ts'

/** An event loop whose turns are run by the test. Each start of a handshake takes `startMs`. */
class Loop implements HandshakeScheduler {
  time = 0
  startMs = 1
  readonly started: string[] = []
  readonly abandoned: string[] = []
  #later: (() => void)[] = []
  #timers: { readonly at: number; readonly action: () => void }[] = []
  readonly records = new AddressRecords(() => this.time)
  readonly queue = new HandshakeQueue(this, this.records)

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

  add(host: string, count = 1, kind?: 'retry' | 'certificate'): Handshake[] {
    return Array.from({ length: count }, (_, i) => {
      const handshake: Handshake = {
        host,
        asksForCertificate: kind === 'certificate',
        needsRetry: kind === 'retry',
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

it('a turn reads the first bytes of as many clients as fit into half of its time, and starts handshakes in the other half', () => {
  const loop = new Loop()
  let read = 0
  for (let client = 0; client < 30; client++)
    loop.queue.read(() => {
      read++
      loop.time += 0.25
    })
  loop.add('a', 30)
  expect([read, loop.turn(), read, loop.turn(), read]).toEqual([0, 2, 6, 2, 12])
  for (let turn = 0; turn < 3; turn++) loop.turn()
  expect(read).toBe(30)
})

it('first bytes are read while no handshake can start', () => {
  const loop = new Loop()
  loop.startMs = 0
  loop.add('a', 40)
  loop.turn()
  let read = 0
  for (let client = 0; client < 3; client++)
    loop.queue.read(() => {
      read++
      loop.time += 1.5
    })
  for (let turn = 0; turn < 3; turn++) loop.turn()
  expect(read).toBe(3)
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

it('a handshake with a second ClientHello takes the places of sixteen', () => {
  const loop = new Loop()
  loop.startMs = 0
  for (const host of ['a', 'b', 'c', 'd', 'e']) loop.add(host, 5, 'retry')
  expect(loop.turn()).toBe(4)
})

it('an address has one handshake at a time in which it may show a certificate, until one is complete, with a certificate or without', () => {
  const loop = new Loop()
  loop.startMs = 0
  const [first, second] = loop.add('a', 40, 'certificate')
  expect(loop.turn()).toBe(1)
  loop.run(500)
  expect(loop.started).toEqual(['a'])
  loop.queue.remove(first!, { failedAfterBytes: 0 })
  expect(loop.turn()).toBe(1)
  loop.queue.remove(second!)
  expect(loop.turn()).toBe(32)
})

it('a handshake that is held open by an address without one that was complete loses its place to its next one', () => {
  const loop = new Loop()
  loop.startMs = 0
  loop.add('a', 2, 'certificate')
  loop.run(1200)
  expect([loop.started, loop.abandoned]).toEqual([['a', 'a'], ['a 0']])
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

/** A loop in which the addresses have shown trusted certificates. */
function loopThatTrusts(...hosts: readonly string[]): Loop {
  const loop = new Loop()
  loop.startMs = 0
  for (const host of hosts) {
    const [handshake] = loop.add(host, 1, 'certificate')
    loop.turn()
    loop.queue.remove(handshake!, { isTrusted: true })
  }
  loop.started.length = 0
  return loop
}

it('clients of an address that has shown a trusted certificate take the places of four, since no guard judges theirs', () => {
  const loop = loopThatTrusts('a', 'b')
  for (const host of ['a', 'b', 'c']) loop.add(host, 10, 'certificate')
  expect(loop.turn()).toBe(16)
  expect(loop.started.toSorted().join('')).toBe('aaaaaaaabbbbbbbc')
})

it('a long chain of an address that was trusted closes what else it has begun, and a guard judges its chains from then on', () => {
  const loop = loopThatTrusts('a', 'b')
  const [first] = loop.add('a', 3, 'certificate')
  for (const host of ['b', 'c']) loop.add(host, 1, 'certificate')
  loop.turn()
  loop.queue.remove(first!, { failedAfterBytes: 40_960 })
  expect(loop.abandoned).toEqual(['a 1', 'a 2'])
  loop.started.length = 0
  const [next] = loop.add('a', 20, 'certificate')
  loop.run(2500)
  expect(loop.started).toHaveLength(20)
  loop.queue.remove(next!, { isTrusted: true })
  expect(['a', 'b'].map((host) => loop.records.isTrusted(host))).toEqual([false, true])
})

it('an address waits for eight seconds at most, whatever its clients have sent', () => {
  const loop = new Loop()
  loop.add('a')
  loop.turn()
  for (let i = 0; i < 10; i++) loop.queue.delay('a', 1 << 20)
  loop.add('a')
  loop.run(7900)
  expect(loop.started).toHaveLength(1)
  loop.run(200)
  expect(loop.started).toHaveLength(2)
})

it('a handshake whose connection closes while it waits is not started', () => {
  const loop = new Loop()
  const [first] = loop.add('a', 2)
  loop.queue.remove(first!, { failedAfterBytes: 300 })
  loop.run(10)
  expect(loop.started).toHaveLength(1)
})

it('the addresses of one IPv6 network share places and pauses, as one IPv4 address does', () => {
  const loop = new Loop()
  for (let i = 0; i < 40; i++) loop.add(`2001:db8::${i.toString(16)}`)
  loop.add('2001:db8:0:1::1')
  loop.run(100)
  expect([loop.started.length, loop.started.includes('2001:db8:0:1::1')]).toEqual([33, true])
  const paused = new Loop()
  paused.queue.delay('::ffff:192.0.2.1', 2048)
  paused.queue.delay('2001:db8::1', 2048)
  for (const host of ['192.0.2.1', '192.0.2.2', '2001:db8::2', '2001:db8:1::2']) paused.add(host)
  paused.run(10)
  expect(paused.started).toEqual(['192.0.2.2', '2001:db8:1::2'])
})

interface Flood {
  readonly needsRetry?: boolean
  /** Whether each handshake comes from another address. */
  readonly isNew?: boolean
}

/** Has addresses connect again whenever they have lost their handshakes, and stay silent. */
function floodFrom(loop: Loop, hosts: number, { needsRetry = false, isNew = false }: Flood = {}): void {
  let next = hosts
  for (let host = 0; host < hosts; host++) {
    const connect = (): void => {
      const handshake: Handshake = {
        host: `flood ${isNew ? next++ : host}`,
        asksForCertificate: true,
        needsRetry,
        start() {},
        abandon() {
          loop.abandoned.push(this.host)
          loop.queue.remove(handshake, { failedAfterBytes: 300 })
          connect()
        },
      }
      loop.queue.add(handshake)
    }
    connect()
  }
}

it('silent handshakes of 250 addresses keep another one out for seconds, and not at all once they have lost their places', () => {
  const loop = new Loop()
  loop.startMs = 0
  floodFrom(loop, 250)
  loop.run(500)
  const [honest] = loop.add('honest', 1, 'certificate')
  loop.run(8000)
  expect(loop.started).toEqual(['honest'])
  loop.queue.remove(honest!)
  loop.add('other', 1, 'certificate')
  loop.run(200)
  expect(loop.started).toEqual(['honest', 'other'])
})

it('silent handshakes of 60 addresses with a second ClientHello keep another one out for two seconds', () => {
  const loop = new Loop()
  loop.startMs = 0
  floodFrom(loop, 60, { needsRetry: true })
  loop.run(500)
  loop.add('honest', 1, 'certificate')
  loop.run(2000)
  expect(loop.started).toEqual(['honest'])
})

it('a handshake that is held open is closed once, however many addresses wait for its place', () => {
  const loop = new Loop()
  loop.startMs = 0
  const held: string[] = []
  for (const host of ['a', 'b', 'c', 'd'])
    loop.queue.add({
      host,
      asksForCertificate: true,
      needsRetry: false,
      start() {},
      // Its connection is closed in a later turn.
      abandon: () => void held.push(host),
    })
  loop.turn()
  for (let host = 0; host < 200; host++) loop.add(`${host}`, 1, 'certificate')
  loop.run(1100)
  expect(held).toEqual(['a', 'b', 'c', 'd'])
})

/** Has a hundred addresses connect whose handshakes take so long, again where they have lost their places. */
function farClients(loop: Loop, ms: number) {
  const waiting = new Set<string>()
  const lost: string[] = []
  for (let client = 0; client < 100; client++) {
    const host = `client ${client}`
    const connect = (): void => {
      let isOpen = true
      const handshake: Handshake = {
        host,
        asksForCertificate: true,
        needsRetry: false,
        start() {
          loop.after(ms, () => {
            if (!isOpen) return
            loop.queue.remove(handshake, { isTrusted: true })
            waiting.delete(host)
          })
        },
        abandon() {
          isOpen = false
          lost.push(host)
          loop.queue.remove(handshake, { failedAfterBytes: 300 })
          connect()
        },
      }
      loop.queue.add(handshake)
    }
    waiting.add(host)
    connect()
  }
  return { waiting, lost }
}

it('handshakes of many clients that are far away are completed, during a flood too', () => {
  for (const silent of [0, 100]) {
    const loop = new Loop()
    loop.startMs = 0
    floodFrom(loop, silent)
    loop.run(4000)
    const { waiting } = farClients(loop, 150)
    loop.run(silent === 0 ? 4500 : 60_000)
    expect(waiting.size).toBe(0)
  }
})

it('in a flood of ever other addresses most clients from far away keep their places', () => {
  const loop = new Loop()
  loop.startMs = 0
  floodFrom(loop, 250, { isNew: true })
  const lost = new Set<string>()
  const ready = new Set<string>()
  for (let client = 0; client < 60; client++) {
    loop.run(250)
    const host = `client ${client}`
    const handshake: Handshake = {
      host,
      asksForCertificate: true,
      needsRetry: false,
      start: () =>
        loop.after(150, () => {
          if (lost.has(host)) return
          ready.add(host)
          loop.queue.remove(handshake, { isTrusted: true })
        }),
      abandon() {
        lost.add(host)
        loop.queue.remove(handshake, { failedAfterBytes: 300 })
      },
    }
    loop.queue.add(handshake)
  }
  loop.run(5000)
  expect(ready.size + lost.size).toBe(60)
  expect(ready.size).toBeGreaterThan(40)
})

it('a flood of addresses that have failed has no client from far away lose its place', () => {
  const loop = new Loop()
  loop.startMs = 0
  floodFrom(loop, 250)
  loop.run(15_000)
  const { waiting, lost } = farClients(loop, 700)
  loop.run(40_000)
  expect([waiting.size, lost.length]).toEqual([0, 0])
})

it('of those that wait, addresses with trusted certificates start first and those that have failed last, but for every fourth start', () => {
  const loop = loopThatTrusts('trusted')
  const [failed] = loop.add('failed')
  loop.turn()
  loop.queue.remove(failed!, { failedAfterBytes: 10 })
  loop.run(10)
  loop.started.length = 0
  for (const host of ['failed', 'unknown', 'trusted']) loop.add(host, 3)
  loop.turn()
  expect(loop.started.map((host) => host[0]).join('')).toBe('tfttufuuf')
})

it('addresses of a network of IPv6 that has shown a trusted certificate are trusted', () => {
  const loop = new Loop()
  const [first] = loop.add('2001:db8::1', 1, 'certificate')
  loop.turn()
  loop.queue.remove(first!, { isTrusted: true })
  for (let i = 2; i <= 9; i++) loop.add(`2001:db8::${i}`, 1, 'certificate')
  loop.run(100)
  expect(loop.started).toHaveLength(9)
})

it('a start takes no more time for the addresses of the clients that wait', () => {
  const loop = new Loop()
  let reads = 0
  const handshakes = Array.from({ length: 250 }, (_, i): Handshake => {
    const handshake = {
      get host() {
        reads++
        return `2001:db8:${i.toString(16)}::1`
      },
      asksForCertificate: false,
      needsRetry: false,
      start: () => void loop.started.push(''),
      abandon: () => {},
    }
    loop.queue.add(handshake)
    return handshake
  })
  while (loop.started.length < 250) {
    const begun = loop.started.length
    loop.turn()
    for (const handshake of handshakes.slice(begun, loop.started.length)) loop.queue.remove(handshake)
  }
  expect(reads).toBeLessThanOrEqual(3 * 250)
})
