import { writeSync } from 'node:fs'
import type { Socket } from 'node:net'
import { Worker } from 'node:worker_threads'
import { underWay, type Gathering } from './gathering.ts'

/** Sockets that are written to at once. */
const PLACES = 512
/** Bytes of all of them. */
const BYTES = 128 * 1024
/** What is larger is not worth its copy: one thread writes it as fast. */
const LARGEST = 4096
/** So few are written to by the thread that has them. */
const FEW = 8
/** How often a wait of so many milliseconds may end in vain before the other threads are taken to be dead. */
const PATIENCE_MS = 100
const WAITS = 100

/** Where things are in `control`. */
const ROUND = 0
const LEFT = 1
const DONE = 2

/** What all threads see. */
export interface Shared {
  /** The round; how many places nobody has taken on yet, or less than 0; how many are done. */
  readonly control: Int32Array
  readonly descriptors: Int32Array
  /** Where the bytes of each place begin; those of the next begin where they end. */
  readonly starts: Int32Array
  /** Bytes of each place that the system has taken. */
  readonly written: Int32Array
  readonly bytes: Uint8Array
}

type Write = typeof writeSync

/**
 * Writes to many sockets on several threads.
 *
 * FENCED: the descriptors of sockets, which the platform keeps to itself (`_handle.fd`), are written to by threads that do not own
 * them. All happens between a call and its return: this thread takes its share of the work and waits for the others, so that no
 * socket can be closed, and no descriptor be another one's, meanwhile.
 * Why: a small write is 10 µs and more in the system, so that 10,000 watchers are told of a change in more than a tenth of a second
 * by one thread, and in less than half of it by three (docs/performance.md).
 * Rules: a socket has nothing queued when its bytes are taken, and nobody writes to it, ends or closes it before they are
 * written. What the system does not take at once, or refuses, goes to the socket, which waits or fails as ever.
 */
export class Crew implements Gathering {
  round = 0
  readonly #shared: Shared = {
    control: new Int32Array(new SharedArrayBuffer(3 * 4)),
    descriptors: new Int32Array(new SharedArrayBuffer(PLACES * 4)),
    starts: new Int32Array(new SharedArrayBuffer((PLACES + 1) * 4)),
    written: new Int32Array(new SharedArrayBuffer(PLACES * 4)),
    bytes: new Uint8Array(new SharedArrayBuffer(BYTES)),
  }
  readonly #write: Write
  readonly #threads: Worker[] = []
  readonly #sockets: Socket[] = []
  #used = 0
  /** Whether a thread did not come back, which may write what it has taken at any time. */
  #isLost = false

  /** `write` is for tests. */
  constructor(write: Write = writeSync) {
    this.#write = write
  }

  /** Starts a thread. Resolves once it can work; rejects where the platform does not let it. */
  addThread(): Promise<void> {
    return new Promise((resolve, reject) => {
      const worker = new Worker(PROGRAM, {
        eval: true,
        workerData: this.#shared,
        name: 'zabra sockets',
        // It holds hardly anything.
        resourceLimits: { maxYoungGenerationSizeMb: 1, maxOldGenerationSizeMb: 16, stackSizeMb: 1 },
        execArgv: [],
        env: {},
      })
      this.#threads.push(worker)
      worker.unref()
      worker.once('message', () => resolve()).once('error', reject)
    })
  }

  /** Ends all threads. */
  async end(): Promise<void> {
    await Promise.all(this.#threads.splice(0).map((thread) => thread.terminate()))
  }

  take(socket: Socket, bytes: Uint8Array): boolean {
    const descriptor = (socket as { _handle?: { fd?: number } | null })._handle?.fd ?? -1
    if (descriptor < 0 || !socket.writable || bytes.length > LARGEST || this.#isLost) return false
    if (this.#sockets.length === PLACES || this.#used + bytes.length > BYTES) this.settle()
    const { descriptors, starts, bytes: all } = this.#shared
    const place = this.#sockets.push(socket) - 1
    descriptors[place] = descriptor
    all.set(bytes, this.#used)
    this.#used += bytes.length
    starts[place + 1] = this.#used
    return true
  }

  settle(): void {
    const { control, starts, written, bytes } = this.#shared
    const sockets = this.#sockets
    const count = sockets.length
    if (count === 0) return
    this.round++
    Atomics.store(control, DONE, 0)
    // This makes the round: a thread that is late for the one before finds places of this one, or none.
    Atomics.store(control, LEFT, count)
    if (count > FEW) {
      Atomics.add(control, ROUND, 1)
      Atomics.notify(control, ROUND)
    }
    writeShare(this.#shared, this.#write)
    const done = awaitOthers(control, count)
    if (done < count) this.#lose(done)
    for (let place = 0; place < count; place++) {
      const from = starts[place]! + written[place]!
      const end = starts[place + 1]!
      if (from < end) sockets[place]!.write(bytes.slice(from, end))
    }
    sockets.length = this.#used = 0
  }

  /**
   * Nobody knows what the peers have got. A thread that comes back finds no descriptor, which would be that of a file by then,
   * and is told to end.
   */
  #lose(done: number): never {
    const sockets = this.#sockets.splice(0)
    const message = `A thread that writes to sockets does not answer: ${done} of ${sockets.length} are written`
    const error = new Error(message)
    this.#isLost = true
    this.#shared.descriptors.fill(-1)
    void this.end()
    for (const socket of sockets) socket.destroy(error)
    throw error
  }

  /** Runs something, and writes at its end what connections were given to write meanwhile. */
  gather(action: () => void): void {
    if (underWay.gathering !== undefined) return action()
    underWay.gathering = this
    try {
      action()
    } finally {
      underWay.gathering = undefined
      this.settle()
    }
  }
}

/** Takes on places until none is left. Other threads get the text of this function: it knows only what it is given. */
function writeShare({ control, descriptors, starts, written, bytes }: Shared, write: Write): void {
  const LEFT = 1
  const DONE = 2
  const AT_ONCE = 4
  for (;;) {
    const end = Atomics.sub(control, LEFT, AT_ONCE)
    if (end <= 0) return
    const first = Math.max(0, end - AT_ONCE)
    for (let place = first; place < end; place++) {
      const start = starts[place]!
      try {
        written[place] = write(descriptors[place]!, bytes, start, starts[place + 1]! - start)
      } catch {
        // The socket does not take anything now, or never will; whoever owns it tries again and hears which.
        written[place] = 0
      }
    }
    Atomics.add(control, DONE, end - first)
    Atomics.notify(control, DONE)
  }
}

const PROGRAM = `
const { parentPort, workerData } = require('node:worker_threads')
const { writeSync } = require('node:fs')
const writeShare = ${writeShare.toString()}
const { control } = workerData
parentPort.postMessage('ready')
for (;;) {
  const round = Atomics.load(control, ${ROUND})
  writeShare(workerData, writeSync)
  Atomics.wait(control, ${ROUND}, round)
}
`

/** Gives how many places are done: fewer than all when somebody has come to an end without having done what it took on. */
function awaitOthers(control: Int32Array, count: number): number {
  let waits = 0
  for (;;) {
    const done = Atomics.load(control, DONE)
    if (done === count || waits === WAITS) return done
    if (Atomics.wait(control, DONE, done, PATIENCE_MS) === 'timed-out') waits++
  }
}
