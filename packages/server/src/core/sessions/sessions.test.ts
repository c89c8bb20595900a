import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { SessionMap } from '../session-map.ts'
import { negotiateTimeout, SessionIdGenerator, SessionPasswords, SessionTracker } from './index.ts'

const hex = (bytes: Uint8Array): string =>
  [...bytes].map((byte) => byte.toString(16).padStart(2, '0')).join('')

describe('SessionIdGenerator', () => {
  it('puts the server id into the highest byte and counts up', () => {
    const ids = new SessionIdGenerator(0x12, 1_700_000_000_000)
    const [first, second] = [ids.next(), ids.next()]
    expect(BigInt.asUintN(64, first) >> 56n).toBe(0x12n)
    expect(second).toBe(first + 1n)
  })

  it('generates negative ids for server ids from 128 on, and never the owner id of containers', () => {
    expect(new SessionIdGenerator(200, 5).next()).toBeLessThan(0n)
    expect(new SessionIdGenerator(128, 0).next()).not.toBe(-(1n << 63n))
  })

  it('does not repeat ids after a restart a millisecond later, unless 65,536 sessions were created before', () => {
    const before = new SessionIdGenerator(1, 1_700_000_000_000)
    let last = before.next()
    for (let i = 0; i < 65_535; i++) last = before.next()
    expect(new SessionIdGenerator(1, 1_700_000_000_001).next()).toBe(last + 1n)
  })

  it.each([1, 200])(
    'of server %i continues with ids of a later time, and never with earlier ones',
    (server) => {
      const ids = new SessionIdGenerator(server, 1_700_000_000_000)
      const before = ids.next()
      ids.renew(1_700_000_000_500)
      const renewed = ids.next()
      expect(renewed).toBe(new SessionIdGenerator(server, 1_700_000_000_500).next())
      ids.renew(1_700_000_000_100)
      expect([ids.next(), renewed > before]).toEqual([renewed + 1n, true])
    },
  )

  it('encodes 8 bits of server id, 40 of time and 16 of counter, for any server and time', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 0, max: 255 }),
        fc.integer({ min: 1, max: 2 ** 53 - 1 }),
        (server, millis) => {
          const first = BigInt.asUintN(64, new SessionIdGenerator(server, millis).next())
          expect(first >> 56n).toBe(BigInt(server))
          expect((first >> 16n) & 0xff_ffff_ffffn).toBe(BigInt(millis) & 0xff_ffff_ffffn)
        },
      ),
    )
  })

  it('generates distinct signed 64-bit ids, even where the counter overflows into the time', () => {
    const ids = new SessionIdGenerator(255, 2 ** 40 - 1)
    const given = Array.from({ length: 200_000 }, () => ids.next())
    expect(new Set(given).size).toBe(given.length)
    expect(given.every((id) => BigInt.asIntN(64, id) === id)).toBe(true)
  })

  it('never generates 0, which stands for no session', () => {
    const ids = new SessionIdGenerator(0, 0)
    expect([ids.next(), ids.next()]).toEqual([1n, 2n])
    // After the last id of server 255 the ids start at 0 again.
    const last = new SessionIdGenerator(255, 2 ** 40 - 1)
    const given = Array.from({ length: 65_537 }, () => last.next())
    expect(given.slice(-2)).toEqual([-1n, 1n])
  })
})

describe('session passwords', () => {
  it('follow from ids while not all members know the secret, and both kinds are accepted', () => {
    const bytes = new Uint8Array(32).fill(7)
    const [used, pending] = [false, true].map(
      (isPending) => new SessionPasswords({ bytes, since: undefined, isPending }),
    )
    const without = new SessionPasswords(undefined)
    expect(pending!.passwordFor(9n, 'who')).toEqual(without.passwordFor(9n))
    for (const passwords of [used!, without])
      expect(pending!.matches(9n, passwords.passwordFor(9n, 'who'), 'who')).toBe(true)
    expect(pending!.matches(9n, used!.passwordFor(9n, 'who'), 'other')).toBe(false)
    expect(used!.matches(9n, without.passwordFor(9n))).toBe(false)
    expect(pending!.isUserOf(9n, used!.userProofFor(9n, 'bob'), 'bob')).toBe(true)
    expect([used!.hasSecret, pending!.hasSecret]).toEqual([true, false])
  })

  it.each([
    [0x0123456789abcdefn, 'f7cd1b8b3f946c477425d41be3f667c6'],
    [1n, '054cc74a37327db215e702e20c73f005'],
    [-1n, '20f62cb5648dc2d771471c8a2486a9ee'],
    [0x0100000000000000n, 'f22acd4a97e69d6d20a49bb638eadb38'],
  ])('of %s without a secret is that of Apache ZooKeeper', (id, password) => {
    const passwords = new SessionPasswords(undefined)
    expect(hex(passwords.passwordFor(id))).toBe(password)
    expect(hex(passwords.passwordFor(id, 'CN=bob'))).toBe(password)
    expect(passwords.matches(id, passwords.passwordFor(id))).toBe(true)
  })

  it.each([undefined, { bytes: new Uint8Array(32).fill(7), since: undefined }])(
    'match no other bytes, and none match session 0 (%j)',
    (secret) => {
      const passwords = new SessionPasswords(secret)
      const almost = passwords.passwordFor(5n).slice()
      expect(passwords.matches(5n, almost)).toBe(true)
      almost[15]! ^= 1
      const short = passwords.passwordFor(5n).subarray(0, 15)
      const long = Uint8Array.of(...passwords.passwordFor(5n), 0)
      for (const wrong of [almost, new Uint8Array(16), short, long, new Uint8Array(0), null])
        expect(passwords.matches(5n, wrong)).toBe(false)
      expect(passwords.matches(0n, passwords.passwordFor(0n))).toBe(false)
    },
  )

  it('are those of another secret once it is replaced', () => {
    const [before, after] = [7, 8].map((byte) => ({ bytes: new Uint8Array(32).fill(byte), since: undefined }))
    const passwords = new SessionPasswords(before)
    passwords.replace(after!)
    expect(passwords.passwordFor(5n)).toEqual(new SessionPasswords(after).passwordFor(5n))
    expect(passwords.matches(5n, new SessionPasswords(before).passwordFor(5n))).toBe(false)
  })

  it('have no secret that protects them when there is none', () => {
    expect(new SessionPasswords(undefined).hasSecret).toBe(false)
  })

  it.each([undefined, { bytes: new Uint8Array(32).fill(7), since: undefined }])(
    'prove the user of a session by 16 bytes of this session and secret (%j)',
    (secret) => {
      const passwords = new SessionPasswords(secret)
      const proof = passwords.userProofFor(5n, 'bob')
      expect(passwords.isUserOf(5n, proof, 'bob')).toBe(true)
      expect(passwords.isUserOf(6n, proof, 'bob')).toBe(false)
      for (const wrong of [proof.subarray(0, 15), Uint8Array.of(...proof, 0), new Uint8Array(16)])
        expect(passwords.isUserOf(5n, wrong, 'bob')).toBe(false)
      // Without a secret the proof names no user: it only tells that a session has one.
      expect(passwords.isUserOf(5n, proof, 'eve')).toBe(secret === undefined)
    },
  )

  it('with a secret differ from those of another secret and of Apache ZooKeeper', () => {
    const id = new SessionIdGenerator(1, 1_700_000_000_000).next()
    const [one, other] = [7, 8].map(
      (byte) => new SessionPasswords({ bytes: new Uint8Array(32).fill(byte), since: undefined }),
    ) as [SessionPasswords, SessionPasswords]
    expect(one.matches(id, other.passwordFor(id))).toBe(false)
    expect(one.matches(id, new SessionPasswords(undefined).passwordFor(id))).toBe(false)
  })

  it('by the formula of Apache ZooKeeper match only sessions from before the secret', () => {
    const since = 1_790_000_000_000
    const passwords = new SessionPasswords({ bytes: new Uint8Array(32), since })
    const apache = new SessionPasswords(undefined)
    for (const server of [0, 1, 127, 128, 255])
      for (const [start, isAccepted] of [
        [since - 400 * 86_400_000, true],
        [since - 1, true],
        [since, false],
        [since + 400 * 86_400_000, false],
      ] as const) {
        const id = new SessionIdGenerator(server, start).next()
        expect([server, start, passwords.matches(id, apache.passwordFor(id))]).toEqual([
          server,
          start,
          isAccepted,
        ])
      }
  })

  it('of a session opened with a certificate match only connections with its identity', () => {
    const passwords = new SessionPasswords({ bytes: new Uint8Array(32), since: undefined })
    const bobs = passwords.passwordFor(5n, 'CN=bob')
    const tries = ['CN=bob', 'CN=eve', ''].map((identity) => passwords.matches(5n, bobs, identity))
    expect(tries).toEqual([true, false, false])
    // A session without an identity goes on where its client has got a certificate meanwhile.
    expect(passwords.matches(5n, passwords.passwordFor(5n), 'CN=bob')).toBe(true)
  })
})

describe('negotiateTimeout', () => {
  it('returns the requested timeout within the limits', () => {
    expect([-1, 0, 5000, 99_999].map((asked) => negotiateTimeout(asked, 4000, 40_000))).toEqual([
      4000, 4000, 5000, 40_000,
    ])
  })
})

describe('SessionTracker', () => {
  it('expires a session at the tick after its deadline, once', () => {
    const tracker = new SessionTracker(2000, 0)
    const session = tracker.add(1n, 4000, 100)
    expect(tracker.expire(5999)).toEqual([])
    expect(tracker.expire(6000)).toEqual([session])
    expect(tracker.expire(60_000)).toEqual([])
    expect(tracker.isOpen(1n)).toBe(false)
    tracker.remove(1n)
    expect([tracker.size, tracker.get(1n)]).toEqual([0, undefined])
  })

  it('checks 500 sessions in a call, in their order, and is due while there are more', () => {
    const tracker = new SessionTracker(1000, 0)
    for (let id = 0n; id < 1200n; id++) tracker.add(id, 2000, 0)
    for (let id = 0n; id < 1200n; id += 2n) tracker.touch(tracker.get(id)!, 1500)
    const odd = (from: bigint, to: bigint): bigint[] =>
      Array.from({ length: Number(to - from) / 2 }, (_, i) => from + BigInt(2 * i) + 1n)
    const expire = (now: number): bigint[] => tracker.expire(now).map(({ id }) => id)
    expect([expire(3000), tracker.nextDeadline]).toEqual([odd(0n, 500n), 3000])
    // One that was not checked yet ends, another one is touched.
    tracker.remove(501n)
    tracker.touch(tracker.get(503n)!, 3000)
    expect([expire(3000), tracker.nextDeadline]).toEqual([odd(504n, 1000n), 3000])
    expect([expire(3000), tracker.nextDeadline]).toEqual([odd(1000n, 1200n), 4000])
    expect([expire(4000).length, expire(4000).length, tracker.nextDeadline]).toEqual([500, 100, 5000])
    expect([expire(6000), tracker.expire(60_000)]).toEqual([[503n], []])
  })

  it('gives the sessions of its table a new deadline, and makes them global unless they are local', () => {
    const table = new SessionMap([[1n, 4000]])
    const tracker = new SessionTracker(2000, 0, { table })
    expect([tracker.size, tracker.get(1n)?.isLocal]).toEqual([1, false])
    expect(new SessionTracker(2000, 0).add(2n, 4000, 0).isLocal).toBe(false)
    expect(new SessionTracker(2000, 0, { isLocal: true }).add(3n, 4000, 0).isLocal).toBe(true)
    expect(tracker.expire(6000).map(({ id }) => id)).toEqual([1n])
    tracker.remove(1n)
    expect(table.size).toBe(0)
  })

  it('gives 500 sessions of its table a deadline when it is made, and others when they are asked for or in a later call', () => {
    const table = new SessionMap(Array.from({ length: 1200 }, (_, i) => [BigInt(i), 4000]))
    const tracker = new SessionTracker(2000, 1000, { table })
    expect([tracker.size, tracker.nextDeadline, [...tracker].length]).toEqual([1200, 1000, 1200])
    const others = new SessionTracker(2000, 1000, { table })
    expect([others.get(1100n)?.deadline, others.isOpen(1101n), others.get(1200n)]).toEqual([
      5000,
      true,
      undefined,
    ])
    others.touch(others.get(1102n)!, 9000)
    others.add(1103n, 6000, 1500)
    others.add(1200n, 4000, 1500)
    others.remove(1104n)
    expect([others.expire(1500), others.expire(1500), others.nextDeadline]).toEqual([[], [], 2000])
    expect(others.size).toBe(1200)
    const expired = [6000, 6000, 6000, 8000].map((now) => others.expire(now).map(({ id }) => id))
    expect(expired.map((ids) => ids.length)).toEqual([500, 499, 199, 1])
    expect(new Set(expired.flat()).size).toBe(1199)
    expect(others.expire(14_000).map(({ id }) => id)).toEqual([1102n])
  })

  it('expires a reopened session, whose closing could not be stored, once more', () => {
    const tracker = new SessionTracker(1000, 0)
    const session = tracker.add(1n, 2000, 0)
    expect(tracker.expire(3000)).toEqual([session])
    expect(tracker.expire(9000)).toEqual([])
    tracker.reopen(session)
    expect(tracker.expire(9999)).toEqual([])
    expect(tracker.expire(10_000)).toEqual([session])
  })

  it('gives a reopened session a new deadline when its client reconnects', () => {
    const tracker = new SessionTracker(1000, 0)
    const session = tracker.add(1n, 2000, 0)
    tracker.expire(3000)
    tracker.reopen(session)
    expect(tracker.isOpen(1n)).toBe(true)
    tracker.add(1n, 5000, 3500)
    expect(tracker.expire(8500)).toEqual([])
    expect(tracker.expire(9000)).toEqual([session])
  })

  it('expires a session later that was closing at its tick and was reopened', () => {
    const tracker = new SessionTracker(1000, 0)
    const session = tracker.add(1n, 2000, 0)
    session.isClosing = true
    expect(tracker.expire(3000)).toEqual([])
    tracker.reopen(session)
    expect(tracker.expire(4000)).toEqual([session])
  })

  it('does not expire a removed session, whether or not it was touched', () => {
    const tracker = new SessionTracker(1000, 0)
    for (const id of [1n, 2n]) tracker.add(id, 2000, 0)
    tracker.remove(1n)
    tracker.expire(3000)
    tracker.remove(2n)
    tracker.remove(3n)
    expect([tracker.size, [...tracker], tracker.isOpen(2n)]).toEqual([0, [], false])
    expect(tracker.expire(60_000)).toEqual([])
  })

  it('expires a session by its new timeout when its client reconnects with a shorter one', () => {
    const tracker = new SessionTracker(1000, 0)
    tracker.add(1n, 60_000, 0)
    tracker.add(1n, 2000, 500)
    expect(tracker.expire(3000).map(({ id }) => id)).toEqual([1n])
  })

  it('expires no session early and none more than a tick late, in 10,000 random histories', () => {
    const tick = 100
    const step = fc.oneof(
      fc.record({
        do: fc.constantFrom('add' as const, 'touch' as const, 'remove' as const),
        id: fc.bigInt(1n, 4n),
        timeout: fc.integer({ min: 1, max: 700 }),
      }),
      fc.record({
        do: fc.constant('pass' as const),
        ms: fc.integer({ min: 1, max: 400 }),
        // Sometimes closing a session cannot be stored.
        lost: fc.boolean(),
      }),
    )
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
        let now = 37
        const tracker = new SessionTracker(tick, now)
        const deadlines = new Map<bigint, { timeout: number; deadline: number }>()
        for (const one of steps) {
          if (one.do === 'pass') {
            // As the server does: a timer for each tick, sometimes a little late.
            now += one.ms
            for (const session of tracker.expire(now)) {
              const { id } = session
              expect(deadlines.get(id)!.deadline).toBeLessThanOrEqual(now)
              if (one.lost) {
                tracker.reopen(session)
                deadlines.get(id)!.deadline = now
                continue
              }
              deadlines.delete(id)
              tracker.remove(id)
            }
            for (const { deadline } of deadlines.values()) expect(deadline + tick).toBeGreaterThan(now)
            expect(tracker.nextDeadline).toBeGreaterThan(now)
          } else if (one.do === 'add') {
            tracker.add(one.id, one.timeout, now)
            deadlines.set(one.id, { timeout: one.timeout, deadline: now + one.timeout })
          } else if (one.do === 'touch') {
            const session = tracker.get(one.id)
            const known = deadlines.get(one.id)
            expect(session === undefined).toBe(known === undefined)
            if (session === undefined) continue
            tracker.touch(session, now)
            known!.deadline = now + known!.timeout
          } else {
            tracker.remove(one.id)
            deadlines.delete(one.id)
          }
          expect(tracker.size).toBe(deadlines.size)
        }
      }),
      { numRuns: 10_000 },
    )
  })
})
