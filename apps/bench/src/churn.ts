import { OPEN_ACL_BYTES, OpCode, type Writer } from '@zabra/protocol'
import type { RawClient } from '@zabra/testkit'
import { openSession } from './open-session.ts'

const TURN_MS = 100
/** Nodes created, and deleted, in each turn. */
const NODES = 40
/** Turns after which a node is deleted. */
const NODE_TURNS = 50
/** Concurrent sessions. One opens and one ends in each turn. */
const SESSIONS = 50
const EPHEMERALS = 5
/** One session in this many is abandoned and has to expire. */
const ABANDONED_EVERY = 5
/** Session timeout: longer than the lifetime of a session, since none of them pings. */
const SESSION_MS = 20_000
const DATA = new Uint8Array(100).fill(0x78)
const ROOT = '/churn'

/**
 * Creates and deletes nodes, watches and sessions with ephemeral nodes at a constant rate. The server's state stops growing
 * after half a minute, so memory that grows later is a leak.
 */
export class Churn {
  readonly #port: number
  readonly #steady: RawClient
  readonly #sessions: RawClient[] = []
  #turn = 0
  #running: Promise<void> | undefined
  #isStopped = false

  private constructor(port: number, steady: RawClient) {
    this.#port = port
    this.#steady = steady
  }

  static async start(port: number): Promise<Churn> {
    const churn = new Churn(port, await openSession(port))
    await churn.#steady.request(OpCode.create, (w) => create(w, ROOT, 0))
    churn.#running = churn.#run()
    // stop() rejects with a failure of the run.
    churn.#running.catch(() => {})
    return churn
  }

  /** Stops the churn and closes its sessions. Rejects when a session was refused or a reply is missing. */
  async stop(): Promise<void> {
    this.#isStopped = true
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(
        () => reject(new Error('The server did not answer a request of the churn')),
        SESSION_MS,
      )
    })
    await Promise.race([this.#end(), late]).finally(() => clearTimeout(timer))
  }

  async #end(): Promise<void> {
    await this.#running
    for (const session of this.#sessions) await session.close()
    await this.#steady.close()
  }

  async #run(): Promise<void> {
    const began = performance.now()
    while (!this.#isStopped) {
      const turn = this.#turn++
      await this.#nodes(turn)
      await this.#session(turn)
      // A server that falls behind gets the next turn at once, but no additional load.
      const wait = began + this.#turn * TURN_MS - performance.now()
      await new Promise((resolve) => setTimeout(resolve, Math.max(0, wait)))
    }
  }

  async #nodes(turn: number): Promise<void> {
    const path = (of: number, index: number): string => `${ROOT}/t${of}-${index}`
    await this.#steady.requestMany(NODES, OpCode.create, (w, i) => create(w, path(turn, i), 0))
    await this.#steady.requestMany(NODES, OpCode.getData, (w, i) => {
      w.string(path(turn, i))
      w.bool(true)
    })
    if (turn < NODE_TURNS) return
    await this.#steady.requestMany(NODES, OpCode.delete, (w, i) => {
      w.string(path(turn - NODE_TURNS, i))
      w.int(-1)
    })
  }

  async #session(turn: number): Promise<void> {
    const session = await openSession(this.#port, SESSION_MS)
    this.#sessions.push(session)
    await session.requestMany(EPHEMERALS, OpCode.create, (w, i) => create(w, `${ROOT}/e${turn}-${i}`, 1))
    await session.request(OpCode.getChildren, (w) => {
      w.string('/zookeeper')
      w.bool(true)
    })
    if (this.#sessions.length <= SESSIONS) return
    const oldest = this.#sessions.shift()!
    if (turn % ABANDONED_EVERY === 0) oldest.destroy()
    else await oldest.close()
  }
}

function create(w: Writer, path: string, flags: number): void {
  w.string(path)
  w.buffer(DATA)
  w.raw(OPEN_ACL_BYTES)
  w.int(flags)
}
