// oxlint-disable no-restricted-imports -- servers and a resolver on real ports
import { getServers, setServers } from 'node:dns/promises'
import { mkdtempSync, rmSync } from 'node:fs'
import { connect as dial, createServer as listen, type AddressInfo, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createServer, type Server } from '@zabra/server'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { DnsServer } from '../testing/dns-server.ts'
import { connect, type Client } from './index.ts'

const name = '_zookeeper._tcp.zabra.test'
const folder = mkdtempSync(join(tmpdir(), 'zabra-services-'))
const before = getServers()
let names: DnsServer
let server: Server
let proxies: TcpProxy[] = []

/** A TCP proxy to the server that can be closed. */
interface TcpProxy {
  readonly port: number
  close(): Promise<void>
}

async function openProxy(at = 0): Promise<TcpProxy> {
  const sockets = new Set<Socket>()
  const keep = (socket: Socket): Socket => {
    sockets.add(socket)
    return socket.on('error', () => {}).once('close', () => sockets.delete(socket))
  }
  const proxy = listen((socket) => {
    const inner = keep(dial(server.addresses.client.port, '127.0.0.1'))
    keep(socket).pipe(inner).pipe(socket)
    socket.once('close', () => inner.destroy())
    inner.once('close', () => socket.destroy())
  })
  await new Promise<void>((resolve) => proxy.listen(at, '127.0.0.1', resolve))
  const made = {
    port: (proxy.address() as AddressInfo).port,
    close: () =>
      new Promise<void>((resolve) => {
        proxy.close(() => resolve())
        for (const socket of sockets) socket.destroy()
      }),
  }
  proxies.push(made)
  return made
}

const addresses = (...ports: number[]): { host: string; port: number }[] =>
  ports.map((port) => ({ host: 'localhost', port }))

const until = async (client: Client, state: string): Promise<string | undefined> => {
  for await (const change of client.states()) if (change.state === state) return change.server
  return undefined
}

beforeAll(async () => {
  names = await DnsServer.start()
  setServers([names.address])
  server = await createServer({ clientPort: 0, dataDir: folder })
})
beforeEach(async () => {
  for (const proxy of proxies) await proxy.close()
  proxies = []
})
afterAll(async () => {
  for (const proxy of proxies) await proxy.close()
  setServers(before)
  await names.stop()
  await server.close()
  rmSync(folder, { recursive: true })
})

describe('servers given as a dns-srv:// name', () => {
  it('are resolved by DNS, with the chroot after the name', async () => {
    const { port } = await openProxy()
    names.set(name, addresses(port))
    const client = await connect({ servers: `dns-srv://${name}/app`, createChroot: true })
    await client.create('/x')
    expect(await until(client, 'connected')).toBe(`tcp://localhost:${port}`)
    await client.close()
    const root = await connect({ servers: `127.0.0.1:${server.addresses.client.port}` })
    expect(await root.exists('/app/x')).toBeDefined()
    await root.close()
  })

  it.each(['none', 'failure'] as const)(
    'are looked up again while the resolver answers with %s',
    async (answer) => {
      const { port } = await openProxy()
      names.set(name, answer)
      const requested = names.queriedNames.length
      const connecting = connect({ servers: `dns-srv://${name}`, signal: AbortSignal.timeout(20_000) })
      await names.waitForQueries(requested + 1)
      names.set(name, addresses(port))
      const client = await connecting
      expect(client.state).toBe('connected')
      await client.close()
    },
  )

  it('are looked up again when the connection is lost, and the session moves to them', async () => {
    const old = await openProxy()
    names.set(name, addresses(old.port))
    const client = await connect({ servers: `dns-srv://${name}` })
    await client.create('/moving', { mode: 'ephemeral' })
    const { id } = client.session
    const next = await openProxy()
    names.set(name, addresses(next.port))
    await old.close()
    await until(client, 'suspended')
    expect(await until(client, 'connected')).toBe(`tcp://localhost:${next.port}`)
    expect(client.session.id).toBe(id)
    expect((await client.exists('/moving'))?.ephemeralOwner).toBe(id)
    await client.close()
  })

  it('are kept when the resolver no longer knows the name', async () => {
    const { port } = await openProxy()
    names.set(name, addresses(port))
    const client = await connect({ servers: `dns-srv://${name}` })
    names.set(name, 'none')
    const requested = names.queriedNames.length
    await proxies[0]!.close()
    await names.waitForQueries(requested + 1)
    await openProxy(port)
    expect(await until(client, 'connected')).toBe(`tcp://localhost:${port}`)
    await client.close()
  })
})
