// oxlint-disable no-restricted-imports -- a test of real processes
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync, readFileSync } from 'node:fs'
import { describe, expect, it, vi } from 'vitest'
import { invariant, InvariantError } from '../invariant.ts'
import type { Connection } from '../network.ts'
import { nodeClock, nodeCompression, nodeNetwork, nodePlatform, nodeRandom, nodeSystem } from './index.ts'

const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

/** Waits for so many samples of the delay of the event loop. */
async function samples(more: number): Promise<void> {
  const until = nodeSystem.eventLoopDelays!().count + more
  while (nodeSystem.eventLoopDelays!().count < until) await nextTurn()
}

/** Holds the event loop, and waits until that is sampled. */
async function hold(ms: number): Promise<void> {
  const end = performance.now() + ms
  while (performance.now() < end);
  await nextTurn()
  await nextTurn()
}

describe('nodeClock', () => {
  it('runs timers after I/O, and no cancelled ones', async () => {
    const seen: string[] = []
    const cancel = nodeClock.after(0, 'cancelled', () => seen.push('cancelled'))
    cancel()
    const before = nodeClock.monotonic()
    await new Promise<void>((resolve) => {
      // Keeps the process busy until the timer is due: a timer alone would not.
      const held = setInterval(() => {}, 1000)
      nodeClock.after(1, 'due', () => {
        clearInterval(held)
        seen.push('due')
        nodeClock.immediate(resolve)
      })
    })
    expect(seen).toEqual(['due'])
    expect(nodeClock.monotonic()).toBeGreaterThan(before)
    expect(Math.abs(nodeClock.wall() - Date.now())).toBeLessThan(1000)
  })
})

describe('a delay beyond 2^31 ms', () => {
  it('does not end at once', async () => {
    let ran = false
    const cancel = nodeClock.after(2 ** 31 + 5, 'in 25 days', () => (ran = true))
    await new Promise<void>((resolve) => nodeClock.immediate(() => nodeClock.immediate(resolve)))
    cancel()
    expect(ran).toBe(false)
  })
})

describe('nodeCompression', () => {
  it('gunzip returns the bytes that gzip got, in parts', async () => {
    const input = new Uint8Array(300_000).map((_, i) => i % 251)
    const pack = nodeCompression.gzip()
    const packed = [
      await pack.write(input.subarray(0, 100_000)),
      await pack.write(input.subarray(100_000)),
      await pack.end(),
    ]
    const unpack = nodeCompression.gunzip()
    const parts: Uint8Array[] = []
    for (const part of packed) if (part.length > 0) parts.push(await unpack.write(part))
    parts.push(await unpack.end())
    expect(Buffer.concat(parts).equals(input)).toBe(true)
  })

  it.each([[0], [0, 0, 0, 0], [0, 1]])(
    'gunzip ignores zero bytes and what follows them: %j %j',
    async (...zeros) => {
      const pack = nodeCompression.gzip()
      const whole = Buffer.concat([await pack.write(Uint8Array.of(1, 2, 3)), await pack.end()])
      for (const parts of [
        [whole, zeros, zeros],
        [Buffer.concat([whole, Uint8Array.from(zeros)]), zeros],
      ]) {
        const unpack = nodeCompression.gunzip()
        const unpacked: Uint8Array[] = []
        for (const part of parts) unpacked.push(await unpack.write(Uint8Array.from(part)))
        unpacked.push(await unpack.end())
        expect(Buffer.concat(unpacked)).toEqual(Buffer.of(1, 2, 3))
      }
    },
  )

  it('gunzip rejects bytes that are not gzip, and a truncated stream', async () => {
    await expect(nodeCompression.gunzip().write(Uint8Array.of(1, 2, 3))).rejects.toThrow(/incorrect header/)
    const pack = nodeCompression.gzip()
    const whole = Buffer.concat([await pack.write(new Uint8Array(1000)), await pack.end()])
    const unpack = nodeCompression.gunzip()
    await unpack.write(whole.subarray(0, whole.length - 6))
    await expect(unpack.end()).rejects.toThrow(/unexpected end/)
  })
})

describe('nodeSystem and nodeRandom', () => {
  it('processIdentity is set for this process, and undefined for an unused id', () => {
    expect(nodeSystem.processIdentity(nodeSystem.pid)).toBe(nodeSystem.processIdentity(nodeSystem.pid))
    expect(nodeSystem.processIdentity(nodeSystem.pid)).toMatch(/^\d+-/)
    expect(nodeSystem.processIdentity(2 ** 30)).toBeUndefined()
    expect(nodeSystem.residentMemory()).toBeGreaterThan(1 << 20)
    expect(nodeSystem.heap!().used).toBeGreaterThan(1 << 20)
    expect(nodeSystem.heap!().external).toBeGreaterThan(0)
    expect(nodeSystem.environment().map(([name]) => name)).toContain('java.version')
    const { open, max } = nodeSystem.fileDescriptors()
    expect(open === -1 || (open > 0 && open < max)).toBe(true)
  })

  it.skipIf(process.platform !== 'linux')('counts one more file descriptor for each opened file', () => {
    const before = nodeSystem.fileDescriptors().open
    const opened = Array.from({ length: 50 }, () => openSync('/dev/null', 'r'))
    expect(nodeSystem.fileDescriptors().open).toBe(before + 50)
    for (const one of opened) closeSync(one)
    expect(nodeSystem.fileDescriptors().open).toBe(before)
  })

  it('maxEventLoopDelay is at most 10 ms below the longest time for which the event loop was held', async () => {
    nodeSystem.resetPauses!()
    await samples(1)
    await hold(50)
    expect(nodeSystem.maxEventLoopDelay!()).toBeGreaterThanOrEqual(40)
    // Reset, it counts no hold of before.
    nodeSystem.resetPauses!()
    expect(nodeSystem.maxEventLoopDelay!()).toBe(0)
  })

  it('longHolds has each time for which the event loop was held for over 100 ms, also after resetPauses', async () => {
    nodeSystem.resetPauses!()
    const before = nodeSystem.longHolds!().count
    await samples(1)
    await hold(150)
    nodeSystem.resetPauses!()
    const holds = nodeSystem.longHolds!()
    expect(holds.count).toBeGreaterThan(before)
    expect(Math.max(...holds.last)).toBeGreaterThanOrEqual(140)
    expect(nodeSystem.longHolds!().count).toBe(holds.count)
  })

  it('a hold of the event loop that begins right after a look is seen by the next one', async () => {
    nodeSystem.resetPauses!()
    await samples(3)
    const before = nodeSystem.longHolds!().count
    nodeSystem.maxEventLoopDelay!()
    await hold(150)
    expect(nodeSystem.longHolds!().count).toBeGreaterThan(before)
    expect(nodeSystem.maxEventLoopDelay!()).toBeGreaterThanOrEqual(140)
  })

  it('maxGcPause is the longest garbage collection since resetPauses, which leaves gcPauses and eventLoopDelays', async () => {
    nodeSystem.resetPauses!()
    const counts = (): number[] => [...nodeSystem.gcPauses!().values()].map(({ count }) => count)
    expect(nodeSystem.maxGcPause!()).toBe(0)
    const kept: unknown[] = []
    while (nodeSystem.maxGcPause!() === 0) {
      for (let i = 0; i < 100_000; i++) kept[i % 1000] = { i }
      await nextTurn()
    }
    while (nodeSystem.eventLoopDelays!().count === 0) await nextTurn()
    const before = [nodeSystem.eventLoopDelays!().count, ...counts()]
    nodeSystem.resetPauses!()
    expect(nodeSystem.maxGcPause!()).toBe(0)
    const after = [nodeSystem.eventLoopDelays!().count, ...counts()]
    expect(after.map((count, i) => count >= before[i]!)).not.toContain(false)
    const [minor] = [...nodeSystem.gcPauses!()]
    expect(minor![0]).toBe('minor')
    expect(minor![1].count).toBeGreaterThan(0)
    expect(minor![1].sum).toBeGreaterThan(0)
    expect(minor![1].countUpTo(10_000)).toBe(minor![1].count)
  })
  it('below returns numbers below the limit', () => {
    for (let i = 0; i < 100; i++) expect(nodeRandom.below(3)).toBeLessThan(3)
    expect(nodeRandom.bytes(16).length).toBe(16)
  })

  it('nodePlatform has every part of a platform, and takes overrides', () => {
    const platform = nodePlatform({ random: nodeRandom })
    const parts = ['clock', 'compression', 'cryptography', 'disk', 'logger', 'network', 'networkFactories']
    expect(Object.keys(platform).toSorted()).toEqual([...parts, 'random', 'system'])
  })
})

describe.skipIf(process.platform !== 'linux')('a killed process that its parent has not reaped', () => {
  it('has no identity', async () => {
    // The first process ends, and its parent never reaps it.
    const parent = spawn('sh', ['-c', 'sleep 0.01 & echo $!; exec sleep 60'])
    try {
      const [line] = (await once(parent.stdout, 'data')) as [Buffer]
      const pid = Number(String(line))
      await vi.waitFor(() => expect(readFileSync(`/proc/${pid}/stat`, 'utf8')).toMatch(/\) Z /))
      expect(nodeSystem.processIdentity(pid)).toBeUndefined()
      expect(nodeSystem.processIdentity(parent.pid!)).toBeDefined()
    } finally {
      parent.kill()
    }
  })
})

describe('invariant', () => {
  it('throws with the message and the details', () => {
    expect(() => invariant(true, 'All is well.')).not.toThrow()
    expect(() => invariant(false, 'Numbers rise.', { last: 2n, next: 1 })).toThrow(InvariantError)
    expect(() => invariant(false, 'Numbers rise.', { last: 2n, next: 1 })).toThrow(
      'Numbers rise. {"last":"0x2","next":1}',
    )
  })
})

describe('connections opened by nodeNetwork', () => {
  /** Opens two connections to a listener that sends each its number at once. Returns the result of `act`. */
  async function twoOf(act: (first: Connection, second: Connection) => Promise<void>): Promise<void> {
    let count = 0
    const accepted: Connection[] = []
    const listener = await nodeNetwork.listen({ host: '127.0.0.1', port: 0 }, (connection) => {
      accepted.push(connection)
      connection.setHandler({ data() {}, drain() {}, closed() {} })
      connection.write(Uint8Array.of(++count))
    })
    const first = await nodeNetwork.connect(listener.address)
    const second = await nodeNetwork.connect(listener.address)
    try {
      await act(first, second)
    } finally {
      for (const connection of [first, second, ...accepted]) connection.destroy()
      await listener.close()
    }
  }

  const next = (connection: Connection): Promise<{ chunk: Uint8Array; bytes: number[] }> =>
    new Promise((resolve) => {
      const data = (chunk: Uint8Array): void => resolve({ chunk, bytes: [...chunk] })
      connection.setHandler({ data, drain() {}, closed() {} })
    })

  it('keep received bytes until a handler is set, however late', async () => {
    await twoOf(async (first, second) => {
      expect((await next(second)).bytes).toEqual([2])
      // The bytes of the first have arrived before: they were sent earlier.
      expect((await next(first)).bytes).toEqual([1])
    })
  })

  it('paused in the turn in which the handler is set deliver nothing before resume', async () => {
    await twoOf(async (first, second) => {
      const seen: number[] = []
      let notify = (): void => {}
      const arrived = new Promise<void>((resolve) => (notify = resolve))
      const data = (chunk: Uint8Array): void => {
        seen.push(...chunk)
        notify()
      }
      first.setHandler({ data, drain() {}, closed() {} })
      first.pause()
      await next(second)
      await new Promise((resolve) => setImmediate(resolve))
      expect(seen).toEqual([])
      first.resume()
      await arrived
      expect(seen).toEqual([1])
    })
  })

  it.skipIf(process.platform === 'win32')(
    'read into one shared array, so that idle ones need none',
    async () => {
      await twoOf(async (first, second) => {
        const [one, two] = [await next(first), await next(second)]
        expect(one.chunk.buffer).toBe(two.chunk.buffer)
        expect([one.bytes, two.bytes]).toEqual([[1], [2]])
      })
    },
  )
})
