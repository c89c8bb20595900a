import { connect } from 'node:net'
import { afterAll, describe, expect, it } from 'vitest'
import { bytes, frame } from './harness/bytes.ts'
import { Client, connectRequest, RawConnection } from './harness/client.ts'
import { op } from './harness/opcodes.ts'
import { freePort } from './harness/ports.ts'
import { cleanUp, Server } from './harness/servers.ts'

/** These take minutes and gigabytes. */
const isLong = process.env['ZABRA_MEMORY_ATTACKS'] === '1'
const TIMEOUT = { timeout: 300_000 }
/** A client beside an attack waits at most so long for a reply, on a busy machine, in milliseconds. */
const MAX_WAIT_MS = 5000
/** The length of a reply without a body. */
const REPLY_BYTES = 20

afterAll(cleanUp)

/** Uses a server with a limited heap, as other clients do beside an attack. */
class Victim {
  readonly #heapMiB: number
  readonly server: Server
  readonly #client: Client
  #longestMs = 0
  #requests = 0
  #peakBytes = 0
  #isDone = false
  readonly #loop: Promise<void>

  private constructor(server: Server, client: Client, heapMiB: number) {
    this.server = server
    this.#client = client
    this.#heapMiB = heapMiB
    this.#loop = this.#use()
  }

  static async start(heapMiB: number, settings: Record<string, string | number> = {}): Promise<Victim> {
    const config = { maxSessionTimeout: 120_000, ...settings }
    const server = await Server.start({ kind: 'zabra', heapMiB, config })
    return new Victim(server, await Client.connect(server.port, { timeoutMs: 120_000 }), heapMiB)
  }

  async #use(): Promise<void> {
    while (!this.#isDone && !this.#client.connection.isClosed) {
      const began = performance.now()
      await this.#client.set('/', 'x').catch(() => {})
      this.#longestMs = Math.max(this.#longestMs, performance.now() - began)
      this.#requests++
      this.#peakBytes = Math.max(this.#peakBytes, this.server.residentBytes || 0)
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
  }

  /** Opens a session whose connection is left to the attack. Undefined when the server refuses it. */
  async attacker(): Promise<RawConnection | undefined> {
    const connection = await RawConnection.open(this.server.port).catch(() => undefined)
    connection?.write(frame(connectRequest({ timeoutMs: 120_000 })))
    return (await connection?.next(60_000)) === undefined ? undefined : connection
  }

  /** Expects that the process lives and has served its other client. Prints figures. */
  async survives(attack: string): Promise<void> {
    this.#isDone = true
    await this.#loop
    expect(
      [this.server.isRunning, this.#client.connection.isClosed],
      this.server.output.slice(-2000),
    ).toEqual([true, false])
    await this.#client.set('/', 'y')
    console.log(
      `${attack}: heap ${this.#heapMiB} MiB, ${Math.round(this.#peakBytes / 2 ** 20)} MiB resident at most, ` +
        `${this.#requests} writes of another client, ${Math.round(this.#longestMs)} ms for the slowest`,
    )
    expect(this.#longestMs).toBeLessThan(MAX_WAIT_MS)
    await this.server.kill()
  }
}

const drained = (connection: RawConnection): Promise<void> =>
  connection.socket.writableLength < 1 << 20
    ? new Promise((resolve) => setImmediate(resolve))
    : new Promise((resolve) => {
        connection.socket.once('drain', resolve)
        void connection.closed.then(resolve)
      })

const request = (type: number, body: Uint8Array): Buffer => frame(bytes().int(1).int(type).raw(body).done())

/** Sends watches with short paths until the connection is cut. Returns their number. */
async function watchUntilCut(connection: RawConnection | undefined, limit: number): Promise<number> {
  if (connection === undefined) return 0
  connection.onFrame = () => {}
  let sent = 0
  while (!connection.isClosed && sent < limit) {
    const batch = Array.from({ length: 2000 }, () =>
      request(
        op.addWatch,
        bytes()
          .str(`/${(sent++).toString(36)}`)
          .int(0)
          .done(),
      ),
    )
    connection.write(Buffer.concat(batch))
    await drained(connection)
  }
  return sent
}

describe.skipIf(!isLong)('a server with little memory serves on beside', () => {
  it('two connections with short watches, again and again, at 1 GiB', TIMEOUT, async () => {
    const victim = await Victim.start(1024)
    let sent = 0
    while (sent < 4_000_000) {
      const both = await Promise.all([victim.attacker(), victim.attacker()])
      for (const count of await Promise.all(both.map((one) => watchUntilCut(one, 2_000_000)))) sent += count
      for (const one of both) one?.destroy()
    }
    await victim.survives(`${sent} short watches`)
  })

  it('five connections with large credentials, again and again, at 512 MiB', TIMEOUT, async () => {
    const victim = await Victim.start(512)
    for (let round = 0; round < 400; round++) {
      const all = await Promise.all(Array.from({ length: 5 }, () => victim.attacker()))
      for (const one of all)
        for (let i = 0; i < 100; i++)
          one?.write(
            request(
              op.auth,
              bytes()
                .int(0)
                .str('digest')
                .buffer(Buffer.alloc(4096, i + 1))
                .done(),
            ),
          )
      await Promise.all(all.map((one) => one?.closed ?? Promise.resolve()))
    }
    await victim.survives('200,000 credentials of 4 KiB')
  })

  it('sixty connections that do not read the replies to multiReads, at 512 MiB', TIMEOUT, async () => {
    const victim = await Victim.start(512)
    const owner = await Client.connect(victim.server.port)
    await owner.create('/large', Buffer.alloc(1_000_000))
    const body = bytes()
    for (let i = 0; i < 7; i++) body.int(op.getData).bool(false).int(-1).str('/large').bool(false)
    const multiRead = request(op.multiRead, body.int(-1).bool(true).int(-1).done())
    for (let round = 0; round < 5; round++) {
      const all = await Promise.all(Array.from({ length: 60 }, () => victim.attacker()))
      for (const one of all) {
        one?.socket.pause()
        for (let i = 0; i < 50; i++) one?.write(multiRead)
      }
      await new Promise((resolve) => setTimeout(resolve, 3000))
      for (const one of all) one?.destroy()
    }
    await victim.survives('300 connections with 50 multiReads of 7 MB, unread')
  })

  it('ten thousand sessions with incomplete requests, at 1 GiB', TIMEOUT, async () => {
    const victim = await Victim.start(1024)
    const all: RawConnection[] = []
    const part = Buffer.alloc(100_004, 1)
    part.writeInt32BE(1_000_000)
    for (let i = 0; i < 10_000; i += 100) {
      const some = await Promise.all(Array.from({ length: 100 }, () => victim.attacker()))
      for (const one of some) {
        if (one === undefined) continue
        one.write(part)
        all.push(one)
      }
    }
    await new Promise((resolve) => setTimeout(resolve, 3000))
    const open = all.filter(({ isClosed }) => !isClosed).length
    await victim.survives(`${all.length} sessions with 100 KB of a request, of which ${open} stayed`)
    for (const one of all) one.destroy()
  })

  it('two connections with short watches while 1.8 GB of znodes are loaded', TIMEOUT, async () => {
    const victim = await Victim.start(2048)
    const owner = await Client.connect(victim.server.port, { timeoutMs: 120_000 })
    const data = Buffer.alloc(1_000_000, 7)
    let isLoading = true
    const load = (async () => {
      for (let i = 0; i < 1800; i += 4)
        await Promise.all([0, 1, 2, 3].map((next) => owner.create(`/n${i + next}`, data)))
      isLoading = false
    })()
    let sent = 0
    const attack = (async () => {
      while (isLoading) {
        const both = await Promise.all([victim.attacker(), victim.attacker()])
        for (const count of await Promise.all(both.map((one) => watchUntilCut(one, 500_000)))) sent += count
        for (const one of both) one?.destroy()
      }
    })()
    await Promise.all([load, attack])
    await victim.survives(`1.8 GB of znodes and ${sent} short watches`)
  })

  it('many connections with short watches, at 1 GiB', TIMEOUT, async () => {
    const victim = await Victim.start(1024)
    // Encoded once, and replies are dropped unread: what the attackers cost is in this process.
    const paths = Array.from({ length: 4000 }, (_, i) => `/${i.toString(36)}`)
    const watches = Buffer.concat(paths.map((path) => request(op.addWatch, bytes().str(path).int(0).done())))
    let sent = 0
    for (let round = 0; round < 5; round++) {
      const all = await Promise.all(Array.from({ length: 200 }, () => victim.attacker()))
      const isOver = all.map(async (one) => {
        if (one === undefined) return
        sent += paths.length
        let received = 0
        const answered = new Promise<void>((resolve) => {
          one.socket.removeAllListeners('data').on('data', (chunk: Buffer) => {
            received += chunk.length
            if (received >= paths.length * REPLY_BYTES) resolve()
          })
        })
        one.write(watches)
        await Promise.race([answered, one.closed])
      })
      await Promise.all(isOver)
      for (const one of all) one?.destroy()
    }
    await victim.survives(`${sent} short watches of 1,000 connections`)
  })

  it('logins by SASL that begin without end, and tokens of 1 MB, at 512 MiB', TIMEOUT, async () => {
    const victim = await Victim.start(512, { 'sasl.digest.users': 'ada:pass' })
    const step = (token: Uint8Array): Buffer => request(op.sasl, bytes().buffer(token).done())
    const large = step(Buffer.alloc(1_000_000, 'a="'))
    let begun = 0
    for (let round = 0; round < 100; round++) {
      const all = await Promise.all(Array.from({ length: 100 }, () => victim.attacker()))
      for (const one of all) {
        if (one === undefined) continue
        begun++
        one.onFrame = () => {}
        // The second step fails; what follows it is not answered.
        one.write(step(Buffer.alloc(0)))
        if (begun % 10 === 0) one.write(large)
        else if (begun % 2 === 0)
          one.write(Buffer.concat(Array.from({ length: 1000 }, () => step(Buffer.alloc(0)))))
      }
      await new Promise((resolve) => setTimeout(resolve, 100))
      for (const one of all) one?.destroy()
    }
    await victim.survives(`${begun} logins by SASL that do not end`)
  })

  it('pipelined, unread and incomplete requests over HTTP, at 512 MiB', TIMEOUT, async () => {
    const adminPort = await freePort()
    const victim = await Victim.start(512, {
      'admin.enableServer': 'true',
      'admin.serverPort': adminPort,
      'admin.serverAddress': '127.0.0.1',
    })
    const get = (path: string): string => `GET ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`
    const attacks = [
      get('/metrics').repeat(5000),
      get('/nothing').repeat(5000),
      `GET / HTTP/1.1\r\nHost: localhost\r\n${'a: b\r\n'.repeat(2500)}`,
      'GET / HTTP/1.1\r\nHost: local',
      'POST /commands/srst HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000000\r\n\r\nx',
      `POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n${'1\r\nx\r\n'.repeat(50_000)}`,
    ]
    let opened = 0
    for (let round = 0; round < 100; round++) {
      const all = Array.from({ length: 60 }, (_, i) => {
        opened++
        const socket = connect(adminPort, '127.0.0.1').on('error', () => {})
        socket.pause().write(attacks[i % attacks.length]!)
        return socket
      })
      await new Promise((resolve) => setTimeout(resolve, 100))
      for (const one of all) one.destroy()
    }
    await victim.survives(`${opened} connections over HTTP with requests that are pipelined or incomplete`)
  })
})
