import { describe, expect, it } from 'vitest'
import type { AbortSignalLike, Connection, Listener, Network } from '../network.ts'
import { lazyTlsNetwork, lazyWebSocketNetwork, lightRandom, keepAliveNodeClock } from './dial.ts'
import { lazy, lazyNetwork } from './lazy.ts'

const to = { host: 'far', port: 2281 }

/** A network whose load the test completes. */
class Slow {
  loads = 0
  readonly signals: (AbortSignalLike | undefined)[] = []
  readonly connection = {} as Connection
  readonly listener = {} as Listener
  done: () => void = () => {}
  fail: (error: Error) => void = () => {}
  readonly network = lazyNetwork(
    'TLS',
    lazy(
      () =>
        new Promise<Network>((resolve, reject) => {
          this.loads++
          this.done = () => resolve(this.#loaded)
          this.fail = reject
        }),
    ),
  )
  readonly #loaded: Network = {
    listen: () => Promise.resolve(this.listener),
    connect: (_, { signal } = {}) => {
      this.signals.push(signal)
      return Promise.resolve(this.connection)
    },
  }
}

describe('lazyNetwork', () => {
  it('loads on first use, and once', async () => {
    const slow = new Slow()
    expect(slow.loads).toBe(0)
    const both = [slow.network.connect(to), slow.network.connect(to)]
    slow.done()
    expect(await Promise.all(both)).toEqual([slow.connection, slow.connection])
    await slow.network.connect(to)
    expect(slow.loads).toBe(1)
  })

  it('listens', async () => {
    const slow = new Slow()
    const listening = slow.network.listen(to, () => {})
    slow.done()
    expect(await listening).toBe(slow.listener)
  })

  it('passes the signal to the network', async () => {
    const slow = new Slow()
    const { signal } = new AbortController()
    const connecting = slow.network.connect(to, { signal })
    slow.done()
    await connecting
    expect(slow.signals).toEqual([signal])
  })

  it('rejects at once when aborted during the load, and does not connect after it', async () => {
    const slow = new Slow()
    const limit = new AbortController()
    const connecting = slow.network.connect(to, { signal: limit.signal })
    const reason = new Error('enough')
    limit.abort(reason)
    await expect(connecting).rejects.toMatchObject({
      name: 'NetworkError',
      code: 'ABORT_ERR',
      message: 'Cannot connect to far:2281 (ABORT_ERR)',
      cause: reason,
    })
    slow.done()
    await slow.network.connect(to)
    expect(slow.signals).toEqual([undefined])
    expect(slow.loads).toBe(1)
  })

  it('does not connect with a signal that has aborted', async () => {
    const slow = new Slow()
    const connecting = slow.network.connect(to, { signal: AbortSignal.abort() })
    slow.done()
    await expect(connecting).rejects.toMatchObject({ code: 'ABORT_ERR' })
    expect(slow.signals).toEqual([])
  })

  it('names the package that cannot be loaded, and loads again for the next connection', async () => {
    const slow = new Slow()
    const connecting = slow.network.connect({ ...to, url: 'wss://far/zabra' })
    const cause = Object.assign(new Error("Cannot find package 'ws'"), { code: 'ERR_MODULE_NOT_FOUND' })
    slow.fail(cause)
    await expect(connecting).rejects.toMatchObject({
      name: 'NetworkError',
      code: 'ERR_MODULE_NOT_FOUND',
      message:
        "Cannot connect to wss://far/zabra (ERR_MODULE_NOT_FOUND): TLS cannot be loaded; install what @zabra/runtime depends on (Cannot find package 'ws')",
      cause,
    })
    const again = slow.network.connect(to)
    slow.done()
    expect(await again).toBe(slow.connection)
    expect(slow.loads).toBe(2)
  })
})

describe.each([
  ['TLS', lazyTlsNetwork({})],
  ['WebSockets', lazyWebSocketNetwork({ clock: keepAliveNodeClock })],
])('%s loaded lazily', (_, network) => {
  it('rejects with ECONNREFUSED when nothing listens', async () => {
    await expect(network.connect({ host: '127.0.0.1', port: 1 })).rejects.toMatchObject({
      name: 'NetworkError',
      code: 'ECONNREFUSED',
    })
  })
})

describe('lightRandom', () => {
  it('returns every number below the limit and no other', () => {
    const drawn = new Set(Array.from({ length: 1000 }, () => lightRandom.below(3)))
    expect(drawn).toEqual(new Set([0, 1, 2]))
    expect(lightRandom.below(1)).toBe(0)
    expect(lightRandom.below(0x1_0000_0000)).toBeLessThan(0x1_0000_0000)
  })

  it('returns random bytes of the operating system', () => {
    const bytes = lightRandom.bytes(32)
    expect(bytes).toHaveLength(32)
    expect(bytes).not.toEqual(lightRandom.bytes(32))
  })
})
