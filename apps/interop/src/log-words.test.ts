import { expect, it } from 'vitest'
import { Ensemble, until } from './ensemble/ensemble.ts'
import { bytes, frame } from './harness/bytes.ts'
import { Client, connectRequest, RawConnection } from './harness/client.ts'
import { op } from './harness/opcodes.ts'
import { Server } from './harness/servers.ts'

/** The client of the test sends no pings. */
const SESSION_MS = 600_000
const CONNECTIONS = 5

/** Waits until a server has written each of these. */
async function untilWritten(server: Server, texts: readonly (string | RegExp)[]): Promise<void> {
  let output = ''
  server.standardOutput.on('data', (chunk: Buffer) => (output += chunk.toString()))
  const missing = () =>
    texts.filter((text) =>
      typeof text === 'string'
        ? !(server.output + output).includes(text)
        : !text.test(server.output + output),
    )
  await until('the words', async () => missing().length === 0).catch((error: unknown) => {
    throw new Error(`Missing: ${missing().join('; ')} in\n${server.output}`, { cause: error })
  })
}

it('log.format=apache has the words of Apache ZooKeeper for what clients do', async () => {
  const timeouts = { minSessionTimeout: 100, maxSessionTimeout: SESSION_MS, tickTime: 100 }
  const config = { 'log.format': 'apache', maxClientCnxns: CONNECTIONS, ...timeouts }
  await using server = await Server.start({ kind: 'zabra', config })
  const client = await Client.connect(server.port, { timeoutMs: SESSION_MS })
  const handshake = async (options: Parameters<typeof connectRequest>[0], then?: Uint8Array) => {
    const connection = await RawConnection.open(server.port)
    connection.write(frame(connectRequest(options)))
    const answer = await connection.next()
    if (then !== undefined) connection.write(then)
    return { connection, answer }
  }
  const silent = await handshake({ timeoutMs: 200 })
  await silent.connection.closed
  const tooLong = await handshake({}, Buffer.from('7fffffff', 'hex'))
  await tooLong.connection.closed
  const stray = await RawConnection.open(server.port)
  stray.write(Buffer.from('GET / HTTP/1.1\r\n\r\n'))
  await stray.closed
  await (
    await handshake({ lastZxid: 0x7777n })
  ).connection.closed
  await (
    await handshake({ resume: { id: 0x1234n, password: Buffer.alloc(16) } })
  ).connection.closed
  for (const path of ['/q', '/zookeeper/quota/q', '/zookeeper/quota/q/zookeeper_stats'])
    await client.create(path)
  await client.create('/zookeeper/quota/q/zookeeper_limits', 'count=1,bytes=-1')
  const { err } = await client.request(op.create, bytes().str('/q/a').buffer('').int(0).int(0).done())
  expect(err).not.toBe(0)
  for (const path of ['/q/a', '/q/b']) await client.create(path)
  const many = await Promise.all(
    Array.from({ length: CONNECTIONS + 1 }, () => RawConnection.open(server.port)),
  )
  await Promise.any(many.map(({ closed }) => closed))
  await untilWritten(server, [
    'Too many connections from /127.0.0.1 - max is 5',
    /Expiring session 0x[\da-f]+, timeout of 200ms exceeded/,
    /Len error\. A message from \/127\.0\.0\.1:\d+ with advertised length of 2147483647 is either a malformed message or too large to process\. /,
    /Len error\. A message from \/127\.0\.0\.1:\d+ with advertised length of 1195725856 is either a malformed message or too large to process\. /,
    /Refusing session\(0x0\) request for client \/127\.0\.0\.1:\d+ as it has seen zxid 0x7777 our last zxid is 0x[\da-f]+ client must try another server/,
    /Invalid session 0x1234 for client \/127\.0\.0\.1:\d+, probably expired/,
    'Quota exceeded: /q [current count=2, softCountLimit=1]. ',
  ])
  await client.close()
})

it('log.format=apache has the words of Apache ZooKeeper for elections', async () => {
  const ensemble = await Ensemble.start({
    kinds: ['zabra', 'zabra', 'zabra'],
    config: { 'log.format': 'apache' },
  })
  const leader = await ensemble.leader()
  const [follower, other] = ensemble.ids.filter((id) => id !== leader)
  await untilWritten(ensemble.member(leader), ['Peer state changed: leading - broadcast'])
  await ensemble.kill(other!)
  await untilWritten(ensemble.member(leader), [`******* GOODBYE [sid:${other}] ********`])
  await untilWritten(ensemble.member(follower!), [
    'PeerState set to LOOKING',
    /FOLLOWING - LEADER ELECTION TOOK - \d+ MS/,
    'Peer state changed: following - broadcast',
  ])
})
