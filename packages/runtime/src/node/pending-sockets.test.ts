import { Socket } from 'node:net'
import { afterEach, expect, it, vi } from 'vitest'
import { AddressRecords, Rank } from './address-records.ts'
import { PendingSockets } from './pending-sockets.ts'

afterEach(() => void vi.restoreAllMocks())

/** Returns a socket whose peer has a port of its own. */
function socketFrom(port: number, host = '10.0.0.9'): Socket {
  const socket = new Socket()
  Object.defineProperties(socket, { remoteAddress: { value: host }, remotePort: { value: port } })
  return socket
}

it('a new socket over the limit is refused, or replaces the oldest one where strangers must not keep others out', () => {
  for (const replacesOldest of [false, true]) {
    const refused: string[] = []
    const pending = new PendingSockets('a TLS handshake', { limit: 2, timeoutMs: 60_000, replacesOldest })
    const sockets = [1, 2, 3].map((port) => socketFrom(port))
    const admitted = sockets.map((socket) =>
      pending.admit(socket, ({ message }) => void refused.push(message)),
    )
    expect(admitted).toEqual([true, true, replacesOldest])
    expect(sockets.map(({ destroyed }) => destroyed)).toEqual([replacesOldest, false, !replacesOldest])
    expect(refused).toHaveLength(1)
    expect(pending.size).toBe(2)
    for (const socket of sockets) socket.destroy()
  }
})

it('a flood from any number of addresses keeps none out for more than a second, and replaces none that has spoken', () => {
  let now = 0
  vi.spyOn(performance, 'now').mockImplementation(() => now)
  const refused: string[] = []
  const pending = new PendingSockets('a TLS handshake', { limit: 3, timeoutMs: 60_000 })
  const sockets: Socket[] = []
  const admit = (host: string): boolean => {
    const socket = socketFrom(sockets.length, host)
    sockets.push(socket)
    return pending.admit(socket, ({ message }) => void refused.push(message))
  }
  for (const host of ['10.0.0.1', '10.0.0.2', '10.0.0.3']) admit(host)
  pending.spoke(sockets[0]!)
  now = 999
  expect(admit('10.0.0.4')).toBe(false)
  now = 1000
  expect(['10.0.0.5', '10.0.0.6', '10.0.0.7'].map(admit)).toEqual([true, true, false])
  expect(sockets.map(({ destroyed }) => destroyed)).toEqual([false, true, true, true, false, false, true])
  expect(refused).toEqual([
    expect.stringContaining('10.0.0.4:3 is refused: 3 others are still at a TLS handshake'),
    expect.stringContaining('10.0.0.2:1 is refused: newer connections are at a TLS handshake'),
    expect.stringContaining('10.0.0.3:2 is refused: newer connections are at a TLS handshake'),
    expect.stringContaining('10.0.0.7:6 is refused: 3 others are still at a TLS handshake'),
  ])
  expect(pending.size).toBe(3)
  for (const socket of sockets) socket.destroy()
})

it('over the limit the address with most sockets loses its oldest one to another address', () => {
  const refused: string[] = []
  const pending = new PendingSockets('an HTTP request', { limit: 4, timeoutMs: 60_000 })
  const admit = (port: number, host: string): boolean => {
    const socket = socketFrom(port, host)
    sockets.push(socket)
    return pending.admit(socket, ({ message }) => void refused.push(message))
  }
  const sockets: Socket[] = []
  for (const port of [1, 2, 3, 4]) admit(port, '10.0.0.9')
  expect(admit(5, '10.0.0.9')).toBe(false)
  expect(admit(6, '10.0.0.1')).toBe(true)
  expect(admit(7, '10.0.0.2')).toBe(true)
  expect(sockets.map(({ destroyed }) => destroyed)).toEqual([true, true, false, false, true, false, false])
  expect(refused).toEqual([
    expect.stringContaining('10.0.0.9:5 is refused'),
    expect.stringContaining('10.0.0.9:1 is refused'),
    expect.stringContaining('10.0.0.9:2 is refused'),
  ])
  // Addresses with as many as others have no right to their places.
  for (const [port, host] of [
    [8, '10.0.0.3'],
    [9, '10.0.0.4'],
  ] as const)
    admit(port, host)
  expect(sockets.at(-1)!.destroyed).toBe(true)
  expect(pending.size).toBe(4)
  for (const socket of sockets) socket.destroy()
})

it('a flood from one address, or network of IPv6, replaces no socket of another', () => {
  for (const flood of ['10.0.0.9', '2001:db8::']) {
    const pending = new PendingSockets('a TLS handshake', {
      limit: 4,
      timeoutMs: 60_000,
      replacesOldest: true,
    })
    const admit = (port: number, address: string): Socket => {
      const socket = socketFrom(port, address)
      expect(pending.admit(socket, () => {})).toBe(true)
      return socket
    }
    const first = admit(1, '10.0.0.1')
    const strangers = Array.from({ length: 20 }, (_, i) =>
      admit(i, flood.endsWith(':') ? `${flood}${i + 1}` : flood),
    )
    const last = admit(1, '10.0.0.2')
    expect([first, last].map(({ destroyed }) => destroyed)).toEqual([false, false])
    expect(strangers.filter(({ destroyed }) => !destroyed)).toEqual(strangers.slice(-2))
    expect(pending.size).toBe(4)
    for (const socket of [first, last, ...strangers]) socket.destroy()
  }
})

it.each([false, true])(
  'a flood of sockets that have spoken, from hundreds of addresses, keeps none out once these have failed (replacing the oldest: %s)',
  (replacesOldest) => {
    const records = new AddressRecords(() => 0)
    const limits = { limit: 100, timeoutMs: 60_000, replacesOldest }
    const pending = new PendingSockets('a TLS handshake', limits, records)
    const sockets: Socket[] = []
    const admit = (host: string): boolean => {
      const socket = socketFrom(sockets.length, host)
      sockets.push(socket)
      const isAdmitted = pending.admit(socket, () => {})
      pending.spoke(socket)
      return isAdmitted
    }
    for (let host = 0; host < 300; host++) records.fail(`10.0.${host >> 8}.${host & 255}`)
    const flood = (): void => {
      for (let host = 0; host < 300; host++) admit(`10.0.${host >> 8}.${host & 255}`)
    }
    flood()
    const honest = [1, 2, 3].map((host) => {
      expect(admit(`10.1.0.${host}`)).toBe(true)
      return sockets.at(-1)!
    })
    flood()
    expect(honest.map(({ destroyed }) => destroyed)).toEqual([false, false, false])
    for (const socket of sockets) socket.destroy()
  },
)

it('an address whose only socket is silent for a second, or takes too long, has failed', () => {
  vi.useFakeTimers()
  const records = new AddressRecords(() => 0)
  const pending = new PendingSockets('a TLS handshake', { limit: 1, timeoutMs: 5000 }, records)
  const sockets = ['10.0.0.1', '10.0.0.2'].map((host, port) => socketFrom(port, host))
  for (const socket of sockets) {
    expect(pending.admit(socket, () => {})).toBe(true)
    vi.advanceTimersByTime(1000)
  }
  expect(records.rankOf('10.0.0.1')).toBe(Rank.FAILED)
  expect(records.rankOf('10.0.0.2')).toBe(Rank.UNKNOWN)
  vi.advanceTimersByTime(4000)
  expect(records.rankOf('10.0.0.2')).toBe(Rank.FAILED)
  vi.useRealTimers()
  for (const socket of sockets) socket.destroy()
})
