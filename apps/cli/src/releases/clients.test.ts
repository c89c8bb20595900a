import { once } from 'node:events'
import { connect as connectTo, createServer, type AddressInfo, type Socket } from 'node:net'
import { connect, type Client } from '@zabra/client'
import { FrameSplitter, Reader } from '@zabra/protocol'
import {
  fromHex,
  plain,
  readFixture,
  releases,
  toHex,
  writeFixture,
  writtenRelease,
} from '@zabra/testkit/release-fixtures'
import { describe, expect, it, onTestFinished } from 'vitest'
import { CliFixture } from '../testing/cli-fixture.ts'

/** What one side has sent before the other one did. */
interface Turn {
  readonly from: 'client' | 'server'
  readonly hex: string
}

interface Fixture {
  readonly turns: readonly Turn[]
  /** What the calls of the client have resolved to. */
  readonly results: readonly unknown[]
}

const SECRET = 'user:secret'

/** Makes a call of each kind, one after the other. Resolves to what they resolve to, or to the codes of their errors. */
async function callAll(client: Client): Promise<readonly unknown[]> {
  const results: unknown[] = []
  const call = async (work: Promise<unknown>): Promise<void> => {
    const result = await work.catch((error: unknown) => ({ code: (error as { code: string }).code }))
    // The order of a reply is one within the client.
    const { order: _, ...rest } = Object(result) as { order?: number }
    results.push(plain(Array.isArray(result) || Object(result) !== result ? result : rest))
  }
  await call(client.create('/r', { data: 'one' }))
  await call(client.create('/r'))
  await call(client.create('/r/e', { mode: 'ephemeral' }))
  await call(client.create('/r/s-', { mode: 'persistentSequential' }))
  await call(client.create('/r/plain-', { mode: 'ephemeralSequential', protected: false }))
  await call(client.create('/r/c', { mode: 'container' }))
  await call(client.create('/r/t', { mode: 'persistentWithTtl', ttlMs: 60_000 }))
  const changed = await client.watchOnce('/r', 'data')
  const watcher = await client.watch('/r', { mode: 'persistentRecursive' })
  await call(client.setData('/r', 'two'))
  await call(changed.fired)
  await call(client.setData('/r', 'three', { version: 7 }))
  await call(client.getData('/r'))
  await call(client.exists('/none'))
  await call(client.getData('/none'))
  await call(client.getChildren('/r'))
  await call(client.getAllChildrenNumber('/r'))
  await call(client.getEphemerals('/r'))
  await call(client.addAuth('digest', SECRET))
  await call(client.whoAmI())
  await call(client.getACL('/r'))
  await call(client.setACL('/r', [{ perms: 31, scheme: 'world', id: 'anyone' }]))
  await call(
    client.multi([
      { op: 'create', path: '/r/m', data: 'm' },
      { op: 'setData', path: '/r/m', data: 'n' },
      { op: 'check', path: '/r', version: 1 },
      { op: 'delete', path: '/r/m' },
    ]),
  )
  await call(client.multi([{ op: 'check', path: '/r', version: 9 }]))
  await call(
    client.multiRead([
      { op: 'getData', path: '/r' },
      { op: 'getChildren', path: '/none' },
    ]),
  )
  await call(client.sync('/r'))
  await watcher.close()
  await call(client.delete('/r/c'))
  await client.close()
  return results
}

const openClient = (port: number): Promise<Client> =>
  connect({ servers: `127.0.0.1:${port}`, sessionTimeoutMs: 600_000 })

/** Returns the frames of a stream without their lengths. */
function framesIn(bytes: Uint8Array): Uint8Array[] {
  const frames: Uint8Array[] = []
  const splitter = new FrameSplitter({
    minLength: 0,
    maxLength: 1 << 20,
    frame: (all, start, end) => void frames.push(all.slice(start, end)),
  })
  splitter.push(bytes)
  return frames
}

/** Listens on a free port until the test ends. Resolves to the port. */
async function listen(accept: (socket: Socket) => void): Promise<number> {
  const listener = createServer((socket) => accept(socket.on('error', () => {})))
  listener.listen(0, '127.0.0.1')
  await once(listener, 'listening')
  onTestFinished(() => void listener.close())
  return (listener.address() as AddressInfo).port
}

/** Records what a client and a server send each other. */
async function capture(): Promise<Fixture> {
  const stage = await CliFixture.start()
  const turns: { from: Turn['from']; bytes: Uint8Array[] }[] = []
  const add = (from: Turn['from'], chunk: Uint8Array): void => {
    if (turns.at(-1)?.from !== from) turns.push({ from, bytes: [] })
    turns.at(-1)!.bytes.push(chunk)
  }
  const port = await listen((client) => {
    const server = connectTo(stage.server.addresses.client.port, '127.0.0.1').on('error', () => {})
    client.on('data', (chunk) => (add('client', chunk), server.write(chunk)))
    server.on('data', (chunk) => (add('server', chunk), client.write(chunk)))
    client.on('close', () => server.destroy())
    server.on('close', () => client.destroy())
  })
  const results = await callAll(await openClient(port))
  await stage.stop()
  return { turns: turns.map(({ from, bytes }) => ({ from, hex: toHex(Buffer.concat(bytes)) })), results }
}

if (writtenRelease !== undefined)
  it('a client and a server write packets', async () => writeFixture('client', await capture()))

/** Plays the server of a recording: sends what it has sent, each turn once as many frames have come as had before it. */
function playServer(turns: readonly Turn[]): (socket: Socket) => void {
  const answers: { readonly after: number; readonly bytes: Uint8Array }[] = []
  let sent = 0
  for (const { from, hex } of turns)
    if (from === 'client') sent += framesIn(fromHex(hex)).length
    else answers.push({ after: sent, bytes: fromHex(hex) })
  return (socket) => {
    let received = 0
    const left = [...answers]
    const requests = new FrameSplitter({
      minLength: 0,
      maxLength: 1 << 20,
      frame() {
        received++
        while (left.length > 0 && left[0]!.after <= received) socket.write(left.shift()!.bytes)
      },
    })
    socket.on('data', (chunk) => requests.push(chunk))
  }
}

/** What a reply says of its form: xid, error and length; the length alone of the first one, which has no header. */
const formOf = (frame: Uint8Array, index: number): readonly number[] => {
  const reader = new Reader(frame)
  if (index === 0) return [frame.length]
  const [xid] = [reader.int(), reader.long()]
  return [xid, reader.int(), frame.length]
}

describe.each(releases)('what a client and a server of release %s have sent each other', (release) => {
  const { turns, results } = readFixture<Fixture>(release, 'client')

  it('is understood by the client: each call resolves as it did', async () => {
    const client = await openClient(await listen(playServer(turns)))
    expect(await callAll(client)).toEqual(results)
  })

  it('is understood by the server: each request gets a reply of the same form', async () => {
    const stage = await CliFixture.start()
    const socket = connectTo(stage.server.addresses.client.port, '127.0.0.1')
    let received: Uint8Array = new Uint8Array(0)
    let wake = (): void => {}
    socket.on('data', (chunk) => {
      received = Buffer.concat([received, chunk])
      wake()
    })
    const expected: Uint8Array[] = []
    for (const { from, hex } of turns)
      if (from === 'client') socket.write(fromHex(hex))
      else {
        expected.push(...framesIn(fromHex(hex)))
        while (framesIn(received).length < expected.length) await new Promise<void>((done) => (wake = done))
      }
    expect(framesIn(received).map(formOf)).toEqual(expected.map(formOf))
    socket.destroy()
    await stage.stop()
  })
})
