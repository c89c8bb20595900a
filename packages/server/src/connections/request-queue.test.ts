import { BufferPool, ErrorCode, OpCode, Reader } from '@zabra/protocol'
import { ManualClock } from '@zabra/runtime'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { PipelineRoom } from './pipeline-room.ts'
import { QueuedRequest, RequestQueue, startedSync, weightOf } from './request-queue.ts'

const queueOf = (pool = new BufferPool()): RequestQueue =>
  new RequestQueue(pool, new PipelineRoom({ clock: new ManualClock(), runLater: queueMicrotask }))

/** Defers a read with a body, and then overwrites the received bytes as the next read of the socket does. */
const defer = (queue: RequestQueue, xid: number, body: Uint8Array): void => {
  const chunk = new Uint8Array(body.length + 7)
  chunk.set(body, 3)
  queue.pushDeferred(new QueuedRequest(xid, OpCode.getData, 0, ErrorCode.OK), chunk, 3, 3 + body.length)
  chunk.fill(0xee)
}

const bodyOf = (request: QueuedRequest): Uint8Array => {
  const reader = request.readBody(new Reader())
  return reader.raw(reader.remaining).slice()
}

describe('RequestQueue', () => {
  it('keeps each deferred body until its reply, whatever other clients of the same pool defer', () => {
    const size = fc.oneof(fc.nat(60), fc.integer({ min: 1000, max: 1100 }), fc.nat(5000))
    const step = fc.record({ client: fc.nat(2), length: size, replies: fc.constantFrom(0, 0, 0, 1, 2, 6) })
    fc.assert(
      fc.property(fc.array(step, { maxLength: 120, size: 'max' }), (steps) => {
        const pool = new BufferPool()
        const queues = [queueOf(pool), queueOf(pool), queueOf(pool)]
        const models: { readonly xid: number; readonly body: Uint8Array }[][] = [[], [], []]
        for (const [xid, { client, length, replies }] of steps.entries()) {
          const queue = queues[client]!
          const model = models[client]!
          const body = new Uint8Array(length).fill(xid + 1)
          defer(queue, xid, body)
          model.push({ xid, body })
          for (let i = 0; i < replies; i++) {
            const first = queue.shift()
            const expected = model.shift()
            expect(first?.xid).toBe(expected?.xid)
            if (first !== undefined) expect(Buffer.compare(bodyOf(first), expected!.body)).toBe(0)
          }
          queue.releaseBuffers()
          const bytes = model.reduce((sum, request) => sum + request.body.length, 0)
          expect(queue.byteSize).toBe(bytes + 200 * model.length)
        }
      }),
      { seed: 12, numRuns: 60 },
    )
  })

  it('returns its buffer to the pool once it is empty, and not before', () => {
    const pool = new BufferPool()
    const queue = queueOf(pool)
    defer(queue, 1, new Uint8Array(10))
    defer(queue, 2, new Uint8Array(10))
    queue.shift()
    queue.releaseBuffers()
    expect(pool.freeBytes).toBe(0)
    queue.shift()
    queue.releaseBuffers()
    expect(pool.freeBytes).toBe(512)
  })

  it('returns its first full buffer too, but leaves later ones to the requests whose bodies they hold', () => {
    const pool = new BufferPool()
    const queue = queueOf(pool)
    for (let xid = 1; xid <= 12; xid++) defer(queue, xid, new Uint8Array(1000))
    while (queue.shift() !== undefined);
    queue.releaseBuffers()
    expect(pool.freeBytes).toBe(1024 + 4096)
  })

  it('copies a body that is received in a Buffer of Node, whose `slice` returns a view', () => {
    for (const length of [10, 1100]) {
      const queue = queueOf()
      const chunk = Buffer.alloc(length, 7)
      queue.pushDeferred(new QueuedRequest(1, OpCode.getData, 0), chunk, 0, length)
      chunk.fill(0xee)
      expect(bodyOf(queue.shift()!).every((byte) => byte === 7)).toBe(true)
    }
  })
})

describe('the room of requests in flight', () => {
  const action = fc.oneof(
    fc.record({ kind: fc.constantFrom('write', 'refused', 'deferred', 'sync'), bytes: fc.nat(2000) }),
    fc.record({ kind: fc.constant('start'), err: fc.constantFrom(undefined, undefined, ErrorCode.OK, -5) }),
    fc.record({ kind: fc.constantFrom('result', 'result', 'reply', 'close') }),
  )

  it('is that of the requests that were submitted and have no result, also once their connection is closed', () => {
    const step = fc.record({ client: fc.nat(2), action })
    fc.assert(
      fc.property(fc.array(step, { maxLength: 80, size: 'max' }), (steps) => {
        const room = new PipelineRoom({ clock: new ManualClock(), runLater() {} })
        const clients = [0, 1, 2].map(() => new ModelClient(room))
        for (const { client, action: one } of steps) {
          clients[client]!.act(one)
          expect(room.bytes).toBe(clients.reduce((sum, { held }) => sum + held, 0))
        }
        for (const one of clients) while (one.inFlight.length > 0) one.act({ kind: 'result' })
        expect(room.bytes).toBe(0)
      }),
      { seed: 7, numRuns: 100 },
    )
  })
})

/** A connection that uses its queue as `RequestProcessor` does, and what the pipeline holds for it. */
class ModelClient {
  readonly queue: RequestQueue
  /** What the requests without a result hold, oldest first. */
  readonly inFlight: number[] = []
  isClosed = false

  constructor(room: PipelineRoom) {
    this.queue = new RequestQueue(new BufferPool(), room)
  }

  get held(): number {
    return this.inFlight.reduce((sum, bytes) => sum + bytes, 0)
  }

  act({ kind, bytes = 0, err }: { kind: string; bytes?: number; err?: number | undefined }): void {
    const { queue } = this
    if (kind === 'result') return this.#takeResult()
    if (this.isClosed) return
    if (kind === 'close') {
      this.isClosed = true
      queue.abandon()
    } else if (kind === 'start') this.#startDeferred(err)
    else if (kind === 'reply') {
      while (queue.isReady && queue.first !== queue.firstDeferred) queue.shift()
    } else if ((kind === 'write' || kind === 'refused') && queue.canStart(true)) {
      const refusal = kind === 'refused' ? ErrorCode.NOAUTH : ErrorCode.OK
      queue.push(new QueuedRequest(1, OpCode.setData, 0, refusal).arrived(bytes, 0, 0, 0).started(100))
      if (kind === 'write') this.inFlight.push(bytes + 100)
    } else {
      const type = kind === 'sync' ? OpCode.sync : OpCode.setData
      const request = new QueuedRequest(1, type, 0, ErrorCode.OK, [], true).arrived(bytes, 0, 0, 0)
      queue.pushDeferred(request, new Uint8Array(bytes), 0, bytes)
    }
  }

  #startDeferred(err: number | undefined): void {
    const { firstDeferred, canStartDeferred } = this.queue
    if (firstDeferred === undefined || !canStartDeferred) return
    const { type, requestBytes } = firstDeferred
    if (type === OpCode.sync) this.queue.replaceDeferred(startedSync(firstDeferred, err).started(50))
    else this.queue.replaceDeferred(new QueuedRequest(1, type, 0, err).arrivedAs(firstDeferred).started(50))
    if (err === undefined || (err === ErrorCode.OK && type !== OpCode.sync))
      this.inFlight.push(requestBytes + 50)
  }

  #takeResult(): void {
    const bytes = this.inFlight.shift()
    if (bytes === undefined) return
    if (this.isClosed) return this.queue.releaseAbandoned()
    while (this.queue.isReady) this.queue.shift()
    expect(this.queue.shift()?.pipelineBytes).toBe(bytes)
  }
}

describe('a write behind deferred reads', () => {
  const small = { largestData: 1000, mostChildren: 100 }
  const canStart = (reads: number, type: number, tree = small): boolean => {
    const queue = queueOf()
    for (let xid = 1; xid <= reads; xid++) {
      const read = new QueuedRequest(xid, type, 0)
      read.weight = weightOf(type, 20, tree)
      queue.pushDeferred(read, new Uint8Array(20), 0, 20)
    }
    return queue.canStart(true)
  }

  it.each([
    ['small reads', 64, OpCode.exists, small],
    ['getData where all data are small', 64, OpCode.getData, small],
    ['getData where data of 1 MiB have been', 3, OpCode.getData, { ...small, largestData: 2 ** 20 }],
    ['multiReads', 4, OpCode.multiRead, small],
    ['lists where all lists are short', 4, OpCode.getChildren2, small],
    ['lists where a long one has been', 0, OpCode.getChildren, { ...small, mostChildren: 2001 }],
    ['counts', 0, OpCode.getAllChildrenNumber, small],
    ['lists of ephemerals', 0, OpCode.getEphemerals, small],
  ])('(%s) is started behind at most %i of them', (_, most, type, tree) => {
    expect([canStart(most, type, tree), canStart(most + 1, type, tree)]).toEqual([true, false])
  })

  it('is started behind multiReads by the data that their parts may copy', () => {
    const weights = [small.largestData, 4096, 2 ** 20].map((largestData) =>
      weightOf(OpCode.multiRead, 3000, { ...small, largestData }),
    )
    expect(weights).toEqual([16, 16, 200])
  })

  it('is started behind multiReads and watches to restore by their parts', () => {
    for (const type of [OpCode.multiRead, OpCode.setWatches, OpCode.setWatches2]) {
      expect(weightOf(type, 16_000, small)).toBeGreaterThan(16)
      expect(weightOf(type, 34_000, small)).toBeGreaterThan(64)
    }
    expect(weightOf(OpCode.setWatches, 100, small)).toBe(1)
  })
})
