import { bytes, frame } from '../harness/bytes.ts'
import { connectRequest, RawConnection, readSession, type Session } from '../harness/client.ts'
import { op } from '../harness/opcodes.ts'
import type { Case, Request, Step } from './case.ts'
import { decodeReply, type Masks } from './decode.ts'

const markerXid = 0x7ff00000
const closingXid = 0x7fe00000
/** Milliseconds to wait for the reply to a closeSession, after which the session is closed over another connection. */
const CLOSE_TIMEOUT_MS = 2_000

const pause = (ms: number): Promise<false> => new Promise((done) => setTimeout(() => done(false), ms))

interface CaseConnection {
  readonly name: string
  readonly connection: RawConnection
  readonly session: Session | undefined
  /** Types of the requests sent, by xid, oldest first. */
  readonly sent: Map<number, number[]>
  readonly lines: string[]
  /** Whether the session was closed by request, so that the server closes the connection. */
  isClosing: boolean
}

/** Runs cases on one server and records the replies, with masked ids, zxids and times. */
export class CaseRunner {
  readonly #port: number
  readonly #opened: CaseConnection[] = []
  #markers = 0

  constructor(port: number) {
    this.#port = port
  }

  /** Runs a case. Resolves to a line per frame or close, in the order of each connection. */
  async run(one: Case): Promise<string[]> {
    const masks: Masks = { base: 0n, sessions: new Map(), now: BigInt(Date.now()) }
    const links = new Map<string, CaseConnection>()
    const transcript: string[] = []
    try {
      // The session of the first connection is the first transaction of the case.
      const first = await this.#connectionOf(links, 'a', masks)
      masks.base = (await this.#lastZxid(first)) - 1n
      for (const [index, step] of one.steps.entries()) {
        const link = await this.#step(step, links, masks)
        const drained = this.#drain(link, masks)
        link.connection.socket.uncork()
        await drained
        const others = [...links.values()].filter((each) => each !== link)
        await Promise.all(others.map((each) => this.#drain(each, masks)))
        for (const each of links.values()) {
          for (const line of each.lines.splice(0)) transcript.push(`${index} ${each.name}: ${line}`)
        }
      }
      return transcript
    } finally {
      // A session left open would end during a later case and use a zxid there.
      await Promise.all(this.#opened.splice(0).map((link) => this.#end(link)))
    }
  }

  async #connect(name: string, handshake: Buffer): Promise<CaseConnection> {
    const connection = await RawConnection.open(this.#port)
    connection.write(handshake)
    const response = await connection.next(30_000).catch(() => Buffer.alloc(0))
    const session = response && response.length >= 20 ? readSession(response) : undefined
    const lines = !response ? ['closed without an answer'] : response.length === 0 ? ['no answer'] : []
    const link = { name, connection, session, sent: new Map(), lines, isClosing: false }
    this.#opened.push(link)
    return link
  }

  async #lastZxid(link: CaseConnection): Promise<bigint> {
    const xid = markerXid + ++this.#markers
    this.#send(link, [{ type: op.exists, body: bytes().str('/').bool(false).done(), xid }])
    for (;;) {
      const reply = await link.connection.next()
      if (!reply) throw new Error('The connection closed before the first request of the case')
      if (reply.readInt32BE() === xid) return reply.readBigInt64BE(4)
    }
  }

  #send(link: CaseConnection, requests: readonly Request[]): void {
    const whole = requests.map(({ type, body, xid = 1 }) => {
      const types = link.sent.get(xid) ?? []
      types.push(type)
      link.sent.set(xid, types)
      return frame(bytes().int(xid).int(type).raw(body).done())
    })
    link.connection.write(Buffer.concat(whole))
  }

  async #connectionOf(
    links: Map<string, CaseConnection>,
    name: string,
    masks: Masks,
  ): Promise<CaseConnection> {
    const known = links.get(name)
    if (known) return known
    const link = await this.#connect(name, frame(connectRequest()))
    if (link.session) masks.sessions.set(link.session.id, `session ${name}`)
    links.set(name, link)
    return link
  }

  async #step(step: Step, links: Map<string, CaseConnection>, masks: Masks): Promise<CaseConnection> {
    if (step.do === 'connect' || step.do === 'resume') {
      const link = await this.#open(step, links)
      links.set(step.on, link)
      if (link.session) {
        if (step.do === 'connect' && link.session.id !== 0n)
          masks.sessions.set(link.session.id, `session ${step.on}`)
        const { id, timeoutMs, password, response } = link.session
        const who = masks.sessions.get(id) ?? String(id)
        link.lines.push(
          `connected ${who} timeout=${timeoutMs} password=${password.every((byte) => byte === 0) ? 'zeros' : password.length} ` +
            `bytes=${response.length} version=${response.readInt32BE()}${response.length > 36 ? ` readOnly=${response[36]}` : ''}`,
        )
      }
      return link
    }
    const link = await this.#connectionOf(links, step.on, masks)
    // Until the marker is behind the request: one write costs half of two.
    if (step.do !== 'raw' && step.do !== 'drop') link.connection.socket.cork()
    if (step.do === 'request') this.#send(link, [step])
    else if (step.do === 'pipeline') this.#send(link, step.requests)
    else if (step.do === 'raw') link.connection.write(step.bytes)
    else if (step.do === 'setWatches') {
      const body = bytes().long(masks.base + BigInt(step.plus))
      for (const list of step.lists) body.strings(list)
      const type = step.lists.length > 3 ? op.setWatches2 : op.setWatches
      this.#send(link, [{ type, body: body.done(), ...(step.xid === undefined ? {} : { xid: step.xid }) }])
    } else {
      link.connection.destroy()
      await link.connection.closed
    }
    return link
  }

  async #open(
    step: Step & { do: 'connect' | 'resume' },
    links: Map<string, CaseConnection>,
  ): Promise<CaseConnection> {
    if (step.do === 'connect') {
      const body = step.body ?? connectRequest()
      const link = await this.#connect(step.on, step.asIs ? body : frame(body))
      for (const [xid, type] of step.behind ?? []) link.sent.set(xid, [type])
      return link
    }
    const session = links.get(step.of)?.session
    if (!session) throw new Error(`No session of ${step.of} to resume`)
    const password = step.spoil ? Buffer.alloc(16, 7) : session.password
    const resume = { id: session.id, password }
    return this.#connect(step.on, frame(connectRequest({ resume, timeoutMs: step.timeoutMs ?? 30_000 })))
  }

  /** Sends a marker request and decodes all frames that arrive before its reply. */
  async #drain(link: CaseConnection, masks: Masks): Promise<void> {
    if (link.lines.at(-1)?.startsWith('closed') || link.lines.at(-1) === 'no answer') return
    if (link.sent.has(-999)) return
    const xid = markerXid + ++this.#markers
    this.#send(link, [{ type: op.exists, body: bytes().str('/').bool(false).done(), xid }])
    for (;;) {
      let reply: Buffer | undefined
      try {
        reply = await link.connection.next(30_000)
      } catch {
        link.lines.push('silent')
        link.sent.set(-999, [])
        return
      }
      if (!reply) {
        link.lines.push('closed')
        link.sent.set(-999, [])
        return
      }
      if (reply.readInt32BE() === xid) return this.#awaitClose(link)
      const type = link.sent.get(reply.readInt32BE())?.shift()
      link.isClosing ||= type === op.closeSession
      link.lines.push(decodeReply(reply, type, masks))
    }
  }

  /** Waits for the close after an error that ends the connection: the marker's reply may arrive before the close. */
  async #awaitClose(link: CaseConnection): Promise<void> {
    if (!link.isClosing && !/ err=-(6|115|124)$/.test(link.lines.at(-1) ?? '')) return
    const end = await Promise.race([link.connection.closed.then(() => true), pause(3000)])
    if (!end) return
    link.lines.push('closed')
    link.sent.set(-999, [])
  }

  /** Closes the session, so that no ephemeral node, watch or zxid of one case affects the next. */
  async #end(link: CaseConnection): Promise<void> {
    const { session, isClosing } = link
    if ((await this.#close(link.connection)) || isClosing || session === undefined || session.id === 0n)
      return
    // The connection was closed before: resume the session to close it. A failed resume means that it has ended.
    const again = await RawConnection.open(this.#port)
    again.write(
      frame(connectRequest({ resume: { id: session.id, password: session.password }, timeoutMs: 30_000 })),
    )
    await again.next(CLOSE_TIMEOUT_MS).catch(() => undefined)
    await this.#close(again)
  }

  /** Closes the session and the connection. Returns whether the server confirmed the close of the session. */
  async #close(connection: RawConnection): Promise<boolean> {
    if (connection.isClosed) return false
    let done = false
    connection.onFrame = (reply) => {
      done ||= reply.readInt32BE() === closingXid
    }
    connection.write(frame(bytes().int(closingXid).int(op.closeSession).done()))
    const timer = setTimeout(() => connection.destroy(), CLOSE_TIMEOUT_MS)
    await connection.closed
    clearTimeout(timer)
    return done
  }
}
