// oxlint-disable no-restricted-imports -- a test of real processes
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync, readFileSync } from 'node:fs'
import { describe, expect, it, vi } from 'vitest'
import { invariant, InvariantError } from '../invariant.ts'
import type { Connection } from '../network.ts'
import { nodeClock, nodeCompression, nodeNetwork, nodePlatform, nodeRandom, nodeSystem } from './index.ts'

describe('the clock of the platform', () => {
  it('runs timers after I/O and forgets cancelled ones', async () => {
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

describe('a very long delay', () => {
  it('is waited for, and not over at once', async () => {
    let ran = false
    const cancel = nodeClock.after(2 ** 31 + 5, 'in 25 days', () => (ran = true))
    await new Promise<void>((resolve) => nodeClock.immediate(() => nodeClock.immediate(resolve)))
    cancel()
    expect(ran).toBe(false)
  })
})

describe('compression of the platform', () => {
  it('gives back what it took, in parts', async () => {
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

  it('rejects what is no gzip and what ends too early', async () => {
    await expect(nodeCompression.gunzip().write(Uint8Array.of(1, 2, 3))).rejects.toThrow(/incorrect header/)
    const pack = nodeCompression.gzip()
    const whole = Buffer.concat([await pack.write(new Uint8Array(1000)), await pack.end()])
    const unpack = nodeCompression.gunzip()
    await unpack.write(whole.subarray(0, whole.length - 6))
    await expect(unpack.end()).rejects.toThrow(/unexpected end/)
  })
})

describe('the process and its chance', () => {
  it('knows itself and that a process beyond every limit does not run', () => {
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

  it.skipIf(process.platform !== 'linux')('counts a file descriptor more for each that is opened', () => {
    const before = nodeSystem.fileDescriptors().open
    const opened = Array.from({ length: 50 }, () => openSync('/dev/null', 'r'))
    expect(nodeSystem.fileDescriptors().open).toBe(before + 50)
    for (const one of opened) closeSync(one)
    expect(nodeSystem.fileDescriptors().open).toBe(before)
  })

  it('tells the longest collection of garbage since it was asked to forget', async () => {
    nodeSystem.resetPauses!()
    expect(nodeSystem.maxGcPause!()).toBe(0)
    const kept: unknown[] = []
    while (nodeSystem.maxGcPause!() === 0) {
      for (let i = 0; i < 100_000; i++) kept[i % 1000] = { i }
      await new Promise((resolve) => setImmediate(resolve))
    }
    nodeSystem.resetPauses!()
    expect(nodeSystem.maxGcPause!()).toBe(0)
  })
  it('draws below a limit', () => {
    for (let i = 0; i < 100; i++) expect(nodeRandom.below(3)).toBeLessThan(3)
    expect(nodeRandom.bytes(16).length).toBe(16)
  })

  it('nodePlatform has every part of a platform, and takes overrides', () => {
    const platform = nodePlatform({ random: nodeRandom })
    expect(Object.keys(platform).sort()).toEqual(
      ['clock', 'compression', 'disk', 'logger', 'network', 'networkFactories', 'random', 'system'].sort(),
    )
  })
})

describe.skipIf(process.platform !== 'linux')('a process that was killed', () => {
  it('is gone although nobody has asked how it ended', async () => {
    // The first process ends and the second, its parent by then, never asks.
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
  it('says what must hold and what was found', () => {
    expect(() => invariant(true, 'All is well.')).not.toThrow()
    expect(() => invariant(false, 'Numbers rise.', { last: 2n, next: 1 })).toThrow(InvariantError)
    expect(() => invariant(false, 'Numbers rise.', { last: 2n, next: 1 })).toThrow(
      'Numbers rise. {"last":"0x2","next":1}',
    )
  })
})

describe('connections that are opened', () => {
  /** Whatever `act` makes of two connections to a listener that sends each of them its number at once. */
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

  it('keep what comes until somebody listens, however late', async () => {
    await twoOf(async (first, second) => {
      expect((await next(second)).bytes).toEqual([2])
      // The bytes of the first have arrived long before: they were sent earlier.
      expect((await next(first)).bytes).toEqual([1])
    })
  })

  it('that are paused in the turn in which they are listened to hand nothing over until they go on', async () => {
    await twoOf(async (first, second) => {
      const seen: number[] = []
      let told = (): void => {}
      const arrived = new Promise<void>((resolve) => (told = resolve))
      const data = (chunk: Uint8Array): void => {
        seen.push(...chunk)
        told()
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
    'read into one array, so that thousands of idle ones cost none',
    async () => {
      await twoOf(async (first, second) => {
        const [one, two] = [await next(first), await next(second)]
        expect(one.chunk.buffer).toBe(two.chunk.buffer)
        expect([one.bytes, two.bytes]).toEqual([[1], [2]])
      })
    },
  )
})
