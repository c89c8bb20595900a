import { OpCode } from '@zabra/protocol'
import { CertificateError } from '@zabra/runtime'
import { expect, it } from 'vitest'
import { connectWith } from './connect-with.ts'
import { ConnectFailedError, OperationTimeoutError } from './errors.ts'
import { setupEachTest, run, world } from './testing/setup.ts'
import type { ConnectFailure } from './client-options.ts'

setupEachTest()

const rejection = (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    () => undefined,
    (error: unknown) => error,
  )

it('connect rejects after 30 s without a server, with the last failure as the cause', async () => {
  await world.stop()
  const error: unknown = await world.within(30_001, rejection(world.connect()))
  expect(error).toBeInstanceOf(OperationTimeoutError)
  expect(error).toMatchObject({
    retryable: true,
    message: expect.stringMatching(
      /within 30000 ms; the last attempt, to tcp:\/\/a:2181, failed: .*waitForever/,
    ),
    cause: { code: 'ECONNREFUSED' },
  })
  expect(world.clock.pendingTimers().map(({ name }) => name)).toEqual([])
  await world.restart()
})

it('connect takes its limit from connectTimeoutMs, and none with waitForever', async () => {
  await world.stop()
  const limited = world.connect({ connectTimeoutMs: 500 })
  await expect(world.within(501, limited)).rejects.toThrow(/within 500 ms/)
  const patient = world.connect({ waitForever: true })
  await world.advance(120_000)
  await world.restart()
  await run((await world.within(20_000, patient)).close())
  await expect(run(world.connect({ waitForever: true, connectTimeoutMs: 1 }))).rejects.toThrow('got both')
})

it('the limit of connect covers the lookup of servers and the creation of the chroot', async () => {
  let lookups = 0
  const resolveSrv = async (): Promise<{ host: string; port: number }[]> => {
    lookups++
    if (world.clock.monotonic() - start < 20_000) throw new Error('SERVFAIL')
    return [{ host: 'a', port: 2181 }]
  }
  const start = world.clock.monotonic()
  const restore = world.refuseConnections()
  const refused = world.connect({ servers: 'dns-srv://zk.example.com', platform: { resolveSrv } })
  await expect(world.within(30_001, refused)).rejects.toThrow(/within 30000 ms.*refused by the test/)
  expect(lookups).toBeGreaterThan(2)
  restore()

  // The server grants a session and keeps it, and does not answer the creation.
  world.faults.toServer = (chunk) =>
    chunk.length > 12 && new DataView(chunk.buffer, chunk.byteOffset).getInt32(8) === OpCode.createContainer
      ? undefined
      : chunk
  const held = world.connect({ chroot: '/app', createChroot: true })
  await expect(world.within(33_000, held)).rejects.toMatchObject({ code: 'OPERATION_TIMEOUT' })
})

it('the limit of connect ends with the first connection', async () => {
  const client = await world.client({ connectTimeoutMs: 500 })
  await world.advance(10_000)
  expect(client.state).toBe('connected')
})

it('connect rejects at once when no attempt can succeed', async () => {
  world.faults.open = () => {
    throw new CertificateError('Cannot read trust.pem (ENOENT).', 'trust.pem')
  }
  const refused = world.connect({ servers: 'a:2181,b:2181' })
  await expect(world.within(1000, refused)).rejects.toMatchObject({
    name: ConnectFailedError.tag,
    code: 'CONNECT_FAILED',
    scope: 'client',
    message: expect.stringContaining('Cannot read trust.pem (ENOENT).'),
    cause: { path: 'trust.pem' },
  })
})

it('connect goes on while one server may become reachable', async () => {
  world.faults.open = ({ host }) => {
    throw host === 'a' ? new CertificateError('unreadable', 'trust.pem') : new Error('refused')
  }
  const connecting = world.connect({ servers: 'a:2181,b:2181' })
  await world.advance(10_000)
  delete world.faults.open
  await run((await world.within(15_000, connecting)).close())
})

it('connect ends when no attempt can succeed at URLs that differ in their queries alone', async () => {
  const open = (): never => {
    throw new CertificateError('unreadable', 'trust.pem')
  }
  const connecting = world.connect({ servers: 'ws://a/?node=1,ws://a/?node=2', transport: { open } })
  await expect(world.within(5000, connecting)).rejects.toMatchObject({ code: 'CONNECT_FAILED' })
})

it('a connected client goes on when a certificate becomes invalid', async () => {
  const client = await world.client()
  world.faults.open = () => {
    throw new CertificateError('unreadable', 'trust.pem')
  }
  world.lastConnection.cut()
  await world.advance(3000)
  expect(client.state).toBe('suspended')
})

it('a client that was connected to a read-only server goes on when a certificate becomes invalid', async () => {
  world.faults.toClient = (chunk) =>
    chunk.length === 41 ? Uint8Array.of(...chunk.subarray(0, 40), 1) : chunk
  const client = await world.client({ readOnly: true })
  expect(client.state).toBe('connectedReadOnly')
  world.faults.open = () => {
    throw new CertificateError('unreadable', 'trust.pem')
  }
  world.lastConnection.cut()
  await world.advance(3000)
  expect(client.state).toBe('suspended')
  delete world.faults.open
  delete world.faults.toClient
  await world.advance(15_000)
  expect(client.state).toBe('connected')
})

it('onAttemptFailed is called with each failed attempt and their number', async () => {
  const refuse = world.refuseConnections()
  const failures: ConnectFailure[] = []
  const connecting = world.connect({ onAttemptFailed: (failure) => void failures.push(failure) })
  while (failures.length < 3) await world.advance(200)
  refuse()
  const client = await world.within(10_000, connecting)
  expect(failures.map(({ attempts }) => attempts).slice(0, 3)).toEqual([1, 2, 3])
  expect(failures[0]).toMatchObject({ server: 'tcp://a:2181', error: { message: 'refused by the test' } })
  await run(client.close())
})

it('the process is warned once when no server grants a session for 5 s', async () => {
  await world.stop()
  const warnings: string[] = []
  const { clock, random } = world.platform()
  const platform = { clock, random }
  for (let i = 0; i < 2; i++) {
    const refused = connectWith(
      { servers: 'a:2181', connectTimeoutMs: 6000 },
      { platform, transport: world.transport, warn: (message) => void warnings.push(message) },
    )
    await expect(world.within(6001, refused)).rejects.toThrow(OperationTimeoutError)
  }
  expect(warnings).toEqual([expect.stringMatching(/for 5 s; the last attempt, to tcp:\/\/a:2181, failed/)])
  await world.restart()
})

it('a client names its server and the time for which its session cannot expire', async () => {
  const client = await world.client({ sessionTimeoutMs: 10_000 })
  await run(client.syncCommitted())
  expect(client.server).toBe('tcp://a:2181')
  expect(client.leaseRemaining()).toBeGreaterThan(5000)
  const refuse = world.refuseConnections()
  world.lastConnection.cut()
  await world.advance(9000)
  expect(client.server).toBeUndefined()
  expect(client.leaseRemaining()).toBeLessThan(2000)
  await world.advance(2000)
  expect(client.leaseRemaining()).toBe(0)
  refuse()
})
