import { bytes } from '../harness/bytes.ts'
import { Client, ConnectionLost, createBody, multiBody, ErrorReply } from '../harness/client.ts'
import { op } from '../harness/opcodes.ts'
import type { Prng } from '../harness/prng.ts'
import { part } from '../differential/requests.ts'

const ephemeral = 1

/** How many writes of one kind a client has sent, and how many were acknowledged. */
interface WriteCount {
  sent: number
  acknowledged: number
}

/**
 * A client that writes under load. Writes of each kind are numbered. Since a server applies the requests of a session in order,
 * the writes that survive a crash must be a prefix that includes every acknowledged one.
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

  /** Writes with up to six requests in flight until the connection is lost. */
  async run(): Promise<void> {
    const inFlight = new Set<Promise<void>>()
    while (!this.client.connection.isClosed) {
      const one = this.#writeOne()
      inFlight.add(one)
      void one.finally(() => inFlight.delete(one))
      if (inFlight.size >= 6) await Promise.race(inFlight)
    }
    await Promise.all(inFlight)
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

  /** Returns a multi that sets two nodes and creates a third. */
  #pair(n: number): Buffer {
    const set = (name: string): [number, Buffer] => [
      op.setData,
      bytes().str(`${this.root}/${name}`).buffer(String(n)).int(-1).done(),
    ]
    return multiBody([set('left'), part.create(`${this.root}/left/${n}`), set('right')])
  }

  /** Returns a multi that creates node n and deletes node n - 1, so that exactly one exists. */
  #createAndDelete(n: number): Buffer {
    const create = part.create(`${this.root}/deleted/${n}`)
    return multiBody(n === 1 ? [create] : [create, part.delete(`${this.root}/deleted/${n - 1}`)])
  }

  async #send(count: WriteCount, type: number, body: (n: number) => Buffer): Promise<void> {
    const n = ++count.sent
    try {
      const reply = await this.client.request(type, body(n))
      const failed = reply.err !== 0 || (type === op.multi && reply.body.int() === -1)
      if (failed) this.refusals.push(new ErrorReply(reply.err, `${this.root}: write ${n} of type ${type}`))
      if (count.acknowledged !== n - 1)
        this.refusals.push(new ErrorReply(0, `${this.root}: replies out of order at ${n}`))
      count.acknowledged = n
      if (reply.zxid > this.highestZxid) this.highestZxid = reply.zxid
    } catch (error) {
      if (!(error instanceof ConnectionLost)) throw error
    }
  }

  /** Compares the tree with the writes sent and acknowledged. Returns a sentence for each violation. */
  async violations(reader: Client): Promise<string[]> {
    const violations = this.refusals.map(({ message }) => message)
    const checkCount = (what: string, found: number, { sent, acknowledged }: WriteCount): void => {
      if (found < acknowledged)
        violations.push(`${this.root}: ${what} is at ${found}, but ${acknowledged} was acknowledged`)
      if (found > sent) violations.push(`${this.root}: ${what} is at ${found}, but only ${sent} were sent`)
    }
    const numbers = async (name: string): Promise<number[]> =>
      (await reader.children(`${this.root}/${name}`)).map(Number).sort((a, b) => a - b)
    const checkPrefix = (what: string, found: number[]): void => {
      if (found.some((n, index) => n !== index + 1))
        violations.push(`${this.root}: ${what} has holes: ${found.join(' ')}`)
    }
    const value = async (name: string): Promise<number> =>
      Number((await reader.get(`${this.root}/${name}`)).data?.toString())

    const created = await numbers('created')
    checkPrefix('created', created)
    checkCount('created', created.length, this.created)
    for (const n of created.slice(-20)) {
      const { data } = await reader.get(`${this.root}/created/${n}`)
      if (data?.toString() !== `value ${n}`)
        violations.push(`${this.root}: created ${n} holds ${JSON.stringify(data?.toString())}`)
    }

    checkCount('counter', await value('counter'), this.counted)
    const version = (await reader.get(`${this.root}/counter`)).stat.version
    if (version !== (await value('counter')))
      violations.push(`${this.root}: the counter's version is ${version}, not its value`)

    const [left, right, halves] = [await value('left'), await value('right'), await numbers('left')]
    if (left !== right || halves.length !== left)
      violations.push(`${this.root}: a multi was applied in part: ${left}, ${right}, ${halves.length} nodes`)
    checkPrefix('left', halves)
    checkCount('paired', left, this.paired)

    const remaining = await numbers('deleted')
    if (remaining.length > 1 || (remaining.length === 0 && this.deleted.acknowledged > 0))
      violations.push(`${this.root}: deleted holds ${remaining.join(' ')}`)
    checkCount('deleted', remaining[0] ?? 0, this.deleted)
    return violations
  }

  /** Checks the number of ephemeral nodes while their session is open. */
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
