import { bytes } from '../harness/bytes.ts'
import { Client, ConnectionLost, createBody, multiBody, ErrorReply } from '../harness/client.ts'
import { op } from '../harness/opcodes.ts'
import type { Prng } from '../harness/prng.ts'
import { part } from '../differential/requests.ts'

const ephemeral = 1

/** What one client knows about its writes: how many it sent, and how many of them were acknowledged. */
interface WriteCount {
  sent: number
  acknowledged: number
}

/**
 * One client under load. Each kind of write is numbered, so that what survives a crash must be an unbroken prefix that
 * holds at least everything acknowledged: requests of a session are carried out in order.
 */
export class LoadClient {
  readonly root: string
  client: Client
  readonly #prng: Prng
  readonly created: WriteCount = { sent: 0, acknowledged: 0 }
  readonly counted: WriteCount = { sent: 0, acknowledged: 0 }
  readonly paired: WriteCount = { sent: 0, acknowledged: 0 }
  readonly deleted: WriteCount = { sent: 0, acknowledged: 0 }
  readonly ephemerals: WriteCount = { sent: 0, acknowledged: 0 }
  highestZxid = 0n
  refusals: ErrorReply[] = []

  private constructor(root: string, client: Client, prng: Prng) {
    this.root = root
    this.client = client
    this.#prng = prng
  }

  static async start(port: number, root: string, prng: Prng, timeoutMs: number): Promise<LoadClient> {
    const client = await Client.connect(port, { timeoutMs })
    await client.create(root)
    for (const name of ['created', 'deleted', 'ephemerals']) await client.create(`${root}/${name}`)
    for (const name of ['counter', 'left', 'right']) await client.create(`${root}/${name}`, '0')
    return new LoadClient(root, client, prng)
  }

  /** Writes, several requests in flight, until the connection is lost. */
  async run(): Promise<void> {
    const flying = new Set<Promise<void>>()
    while (!this.client.connection.isClosed) {
      const one = this.#writeOne()
      flying.add(one)
      void one.finally(() => flying.delete(one))
      if (flying.size >= 6) await Promise.race(flying)
    }
    await Promise.all(flying)
  }

  async #writeOne(): Promise<void> {
    const kind = this.#prng.int(10)
    if (kind < 3)
      return this.#send(this.created, op.create, (n) => createBody(`${this.root}/created/${n}`, `value ${n}`))
    if (kind < 5)
      return this.#send(this.counted, op.setData, (n) =>
        bytes().str(`${this.root}/counter`).buffer(String(n)).int(-1).done(),
      )
    if (kind < 7) return this.#send(this.paired, op.multi, (n) => this.#pair(n))
    if (kind < 8)
      return this.#send(this.ephemerals, op.create, (n) =>
        createBody(`${this.root}/ephemerals/${n}`, '', ephemeral),
      )
    return this.#send(this.deleted, op.multi, (n) => this.#createAndDelete(n))
  }

  /** Both halves and a node change together or not at all. */
  #pair(n: number): Buffer {
    const set = (name: string): [number, Buffer] => [
      op.setData,
      bytes().str(`${this.root}/${name}`).buffer(String(n)).int(-1).done(),
    ]
    return multiBody([set('left'), part.create(`${this.root}/left/${n}`), set('right')])
  }

  /** Number n comes, and number n - 1 goes: there is always exactly one. */
  #createAndDelete(n: number): Buffer {
    const create = part.create(`${this.root}/deleted/${n}`)
    return multiBody(n === 1 ? [create] : [create, part.delete(`${this.root}/deleted/${n - 1}`)])
  }

  async #send(ledger: WriteCount, type: number, body: (n: number) => Buffer): Promise<void> {
    const n = ++ledger.sent
    try {
      const reply = await this.client.request(type, body(n))
      const failed = reply.err !== 0 || (type === op.multi && reply.body.int() === -1)
      if (failed) this.refusals.push(new ErrorReply(reply.err, `${this.root}: write ${n} of type ${type}`))
      if (ledger.acknowledged !== n - 1)
        this.refusals.push(new ErrorReply(0, `${this.root}: replies out of order at ${n}`))
      ledger.acknowledged = n
      if (reply.zxid > this.highestZxid) this.highestZxid = reply.zxid
    } catch (error) {
      if (!(error instanceof ConnectionLost)) throw error
    }
  }

  /** Compares the tree with the ledgers and gives a sentence for each breach. */
  async violations(reader: Client): Promise<string[]> {
    const wrong = this.refusals.map(({ message }) => message)
    const within = (what: string, found: number, { sent, acknowledged }: WriteCount): void => {
      if (found < acknowledged)
        wrong.push(`${this.root}: ${what} is at ${found}, but ${acknowledged} was acknowledged`)
      if (found > sent) wrong.push(`${this.root}: ${what} is at ${found}, but only ${sent} were sent`)
    }
    const numbers = async (name: string): Promise<number[]> =>
      (await reader.children(`${this.root}/${name}`)).map(Number).sort((a, b) => a - b)
    const unbroken = (what: string, found: number[]): void => {
      if (found.some((n, index) => n !== index + 1))
        wrong.push(`${this.root}: ${what} has holes: ${found.join(' ')}`)
    }
    const value = async (name: string): Promise<number> =>
      Number((await reader.get(`${this.root}/${name}`)).data?.toString())

    const created = await numbers('created')
    unbroken('created', created)
    within('created', created.length, this.created)
    for (const n of created.slice(-20)) {
      const { data } = await reader.get(`${this.root}/created/${n}`)
      if (data?.toString() !== `value ${n}`)
        wrong.push(`${this.root}: created ${n} holds ${JSON.stringify(data?.toString())}`)
    }

    within('counter', await value('counter'), this.counted)
    const version = (await reader.get(`${this.root}/counter`)).stat.version
    if (version !== (await value('counter')))
      wrong.push(`${this.root}: the counter's version is ${version}, not its value`)

    const [left, right, halves] = [await value('left'), await value('right'), await numbers('left')]
    if (left !== right || halves.length !== left)
      wrong.push(`${this.root}: half a multi: ${left}, ${right}, ${halves.length} nodes`)
    unbroken('left', halves)
    within('paired', left, this.paired)

    const remaining = await numbers('deleted')
    if (remaining.length > 1 || (remaining.length === 0 && this.deleted.acknowledged > 0))
      wrong.push(`${this.root}: deleted holds ${remaining.join(' ')}`)
    within('deleted', remaining[0] ?? 0, this.deleted)
    return wrong
  }

  /** The ephemeral nodes that the tree holds, checked against the ledger while their session is alive. */
  async ephemeralViolations(reader: Client): Promise<string[]> {
    const found = (await reader.children(`${this.root}/ephemerals`)).length
    const { sent, acknowledged } = this.ephemerals
    return found >= acknowledged && found <= sent
      ? []
      : [
          `${this.root}: ${found} ephemeral nodes, of ${sent} sent and ${acknowledged} acknowledged, though the session lives`,
        ]
  }
}
