import { OPEN_ACL_UNSAFE, OpCode, Reader, readWatcherEvent, Writer, type ACL } from '@zabra/protocol'
import { createOf } from '../../testing/create-of.ts'
import { AclRules } from '../../auth/index.ts'
import { Tree } from '../../tree/index.ts'
import type { Identity, Txn } from '../../types.ts'
import { WatchNotifier, WatchManager, type NotifiedWatcher } from '../../watches/index.ts'
import { ReadHandlers, type ChunkedReply, type ReadCaller } from '../index.ts'
import { test } from 'vitest'

export const SECRET: readonly ACL[] = [{ perms: 31, id: { scheme: 'digest', id: 'bob:hash' } }]
export const text = (value: string): Uint8Array => new TextEncoder().encode(value)
export const hex = (bytes: Uint8Array): string =>
  [...bytes].map((byte) => byte.toString(16).padStart(2, '0')).join('')

export class Client implements NotifiedWatcher, ReadCaller<Client> {
  readonly watchedPaths = new Set<string>()
  readonly sessionId: bigint
  identities: readonly Identity[] = [{ scheme: 'ip', id: '127.0.0.1' }]
  /** The events it received, as `type path`, and their frames in hexadecimal. */
  readonly events: string[] = []
  readonly frames: string[] = []
  readonly listener = this

  constructor(sessionId = 9n) {
    this.sessionId = sessionId
  }

  deliver(frame: Uint8Array): void {
    const reader = new Reader(frame, 20)
    const { type, path } = readWatcherEvent(reader)
    this.events.push(`${type} ${path}`)
    this.frames.push(hex(frame))
  }
}

export interface Answer {
  readonly err: number
  /** Reads the body of this reply. */
  readonly body: Reader
  readonly length: number
  /** In hexadecimal. */
  readonly bytes: string
}

/** A tree and a client that reads it. */
export class ReadFixture {
  readonly tree = new Tree({ extendedTypes: true, digest: true })
  readonly watches = new WatchManager<Client>()
  readonly client: Client
  readonly out = new Writer()
  readonly firing: WatchNotifier<Client>
  readonly #reads: ReadHandlers<Client>

  constructor({ client = new Client(), skipACL = false, empty = false } = {}) {
    const acls = new AclRules({ skipACL })
    this.client = client
    this.firing = new WatchNotifier(this.watches, acls)
    this.#reads = new ReadHandlers<Client>({
      tree: this.tree,
      acls,
      watches: this.watches,
      watchNotifier: this.firing,
    })
    if (empty) return
    this.create('/a', 'data')
    this.create('/a/b', null, OPEN_ACL_UNSAFE, true)
    this.create('/s', 'hidden', SECRET)
  }

  create(path: string, data: string | null, acl: readonly ACL[] = OPEN_ACL_UNSAFE, ephemeral = false): void {
    this.apply(createOf(path, { data: data === null ? null : text(data), acl, ephemeral }))
  }

  /** Applies a transaction, by default with the next zxid and from the client's session. */
  apply(
    txn: Txn,
    zxid = this.tree.lastZxid + 1,
    time = 1000 + zxid,
    sessionId = this.client.sessionId,
  ): void {
    this.firing.zxid = zxid
    this.tree.apply({ sessionId, cxid: 0, zxid, time }, txn, this.firing)
  }

  /** Executes a read after four bytes of another reply, which must not change. */
  ask(op: number, body: Uint8Array | ((w: Writer) => void), client = this.client): Answer {
    const request = new Writer()
    if (typeof body === 'function') body(request)
    else request.raw(body)
    this.out.reset()
    this.out.int(0x01020304)
    const err = this.#reads.execute(op, new Reader(request.take()), this.out, client)
    const written = this.out.bytes()
    if (new Reader(written).int() !== 0x01020304) throw new Error('What was written before has changed')
    const reply = written.slice(4)
    return {
      err,
      body: new Reader(reply),
      length: reply.length,
      // Lazy, because some replies are large.
      get bytes() {
        return hex(reply)
      },
    }
  }

  /** Begins a read, which may be written in several turns, after four bytes of another reply. */
  begin(op: number, body: (w: Writer) => void): number | ChunkedReply {
    const request = new Writer()
    body(request)
    const bytes = request.take()
    this.out.reset()
    this.out.int(0x01020304)
    const begun = this.#reads.begin(op, new Reader(bytes), this.out, this.client)
    if (typeof begun === 'object' && this.out.length !== 4) throw new Error('Something is written already')
    // The next request is read into the same bytes, and other replies are written.
    bytes.fill(0xee)
    this.out.raw(new Uint8Array(1000).fill(0xee))
    return begun
  }

  look(op: number, path: string | null, watch = false): Answer {
    return this.ask(op, (w) => {
      w.string(path)
      w.bool(watch)
    })
  }

  /** Executes an operation on a path and a number: addWatch, checkWatches or removeWatches. */
  number(op: number, path: string | null, value: number): Answer {
    return this.ask(op, (w) => {
      w.string(path)
      w.int(value)
    })
  }

  /** Returns the types of the client's watches on a path, as checkWatches finds them. */
  held(path: string): number[] {
    return [1, 2, 3, 4, 5].filter((type) => this.number(OpCode.checkWatches, path, type).err === 0)
  }
}

/** A test with a tree of its own, which a client reads. */
export const it = test.extend('fixture', () => new ReadFixture())
