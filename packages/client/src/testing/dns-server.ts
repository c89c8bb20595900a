// oxlint-disable no-restricted-imports -- a server for names on a real port
import { createSocket, type Socket } from 'node:dgram'

const SRV = 33
const NXDOMAIN = 3
const SERVFAIL = 2

/** The SRV answer for a name: servers, no such name, or a server failure. */
export type DnsAnswer = readonly { readonly host: string; readonly port: number }[] | 'none' | 'failure'

/** A DNS server for SRV records on a loopback port. */
export class DnsServer {
  readonly #socket: Socket
  readonly #answers = new Map<string, DnsAnswer>()
  readonly #waiting: { readonly count: number; readonly done: () => void }[] = []
  /** Queried names, in order. */
  readonly queriedNames: string[] = []

  private constructor(socket: Socket) {
    this.#socket = socket
    socket.on('message', (query, { port, address }) => socket.send(this.#answer(query), port, address))
  }

  static start(): Promise<DnsServer> {
    const socket = createSocket('udp4')
    return new Promise((resolve, reject) => {
      socket.once('error', reject)
      socket.bind(0, '127.0.0.1', () => resolve(new DnsServer(socket)))
    })
  }

  get address(): string {
    return `127.0.0.1:${this.#socket.address().port}`
  }

  set(name: string, answer: DnsAnswer): void {
    this.#answers.set(name, answer)
  }

  /** Resolves after `count` queries. */
  waitForQueries(count: number): Promise<void> {
    if (this.queriedNames.length >= count) return Promise.resolve()
    return new Promise((done) => this.#waiting.push({ count, done }))
  }

  stop(): Promise<void> {
    return new Promise((resolve) => this.#socket.close(() => resolve()))
  }

  #answer(query: Buffer): Buffer {
    const labels: string[] = []
    let at = 12
    for (let length = query[at]!; length > 0; length = query[at]!) {
      labels.push(query.toString('latin1', at + 1, at + 1 + length))
      at += length + 1
    }
    const question = query.subarray(12, at + 5)
    const name = labels.join('.').toLowerCase()
    this.queriedNames.push(name)
    for (const { count, done } of this.#waiting) if (this.queriedNames.length >= count) done()
    const answer = query.readUInt16BE(at + 1) === SRV ? (this.#answers.get(name) ?? 'none') : 'none'
    const records = typeof answer === 'string' ? [] : answer
    const header = Buffer.alloc(12)
    query.copy(header, 0, 0, 2)
    const code = answer === 'none' ? NXDOMAIN : answer === 'failure' ? SERVFAIL : 0
    // An authoritative answer, with recursion available.
    header.writeUInt16BE(0x8580 | code, 2)
    header.writeUInt16BE(1, 4)
    header.writeUInt16BE(records.length, 6)
    return Buffer.concat([header, question, ...records.map(recordOf)])
  }
}

function recordOf({ host, port }: { host: string; port: number }): Buffer {
  const target = Buffer.concat([
    ...host.split('.').map((label) => Buffer.concat([Buffer.from([label.length]), Buffer.from(label)])),
    Buffer.from([0]),
  ])
  const head = Buffer.alloc(18)
  // A pointer to the name in the question.
  head.writeUInt16BE(0xc00c, 0)
  head.writeUInt16BE(SRV, 2)
  head.writeUInt16BE(1, 4)
  head.writeUInt32BE(0, 6)
  head.writeUInt16BE(6 + target.length, 10)
  head.writeUInt16BE(10, 12)
  head.writeUInt16BE(5, 14)
  head.writeUInt16BE(port, 16)
  return Buffer.concat([head, target])
}
