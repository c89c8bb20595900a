/**
 * Records the messages between real clients and a real server as fixtures, with their decoded form.
 *
 *     pnpm capture HOST:PORT 'client and version' 'server and version' OUT.json COMMAND...
 *
 * runs COMMAND with `{address}` replaced by the address of a proxy before HOST:PORT, and writes one fixture for each
 * exchange: a request, the notifications that came before its reply, and the reply. `--raw FILE` instead of a command
 * sends the frames of a file (a line each: a title, a tab, and hexadecimal digits without the length) one by one on a new
 * session. Session ids and passwords of the server under test are kept; it must hold nothing secret.
 */
import { spawn } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { connect, createServer, type AddressInfo, type Socket } from 'node:net'
import { FrameSplitter } from '../src/index.ts'
import { Conversation, describeFrame, toHex, type Fixture, type Frame } from '../src/testing/conversation.ts'

interface Recorded {
  readonly connection: number
  readonly from: 'client' | 'server'
  readonly hex: string
}

const [target, client, server, out, ...command] = process.argv.slice(2)
if (
  target === undefined ||
  client === undefined ||
  server === undefined ||
  out === undefined ||
  command.length === 0
) {
  throw new Error('Expected HOST:PORT CLIENT SERVER OUT.json COMMAND..., got too few arguments')
}
const [host = '127.0.0.1', port = '2181'] = target.split(':')
const recorded: Recorded[] = []
let connections = 0

const splitter = (connection: number, from: 'client' | 'server'): FrameSplitter =>
  new FrameSplitter({
    maxLength: 0x7fffffff,
    frame: (bytes, start, end) => {
      const length = (end - start).toString(16).padStart(8, '0')
      recorded.push({ connection, from, hex: length + toHex(bytes.subarray(start, end)) })
    },
  })

function relay(near: Socket): void {
  const connection = connections++
  const far = connect(Number(port), host)
  join(near, far, splitter(connection, 'client'))
  join(far, near, splitter(connection, 'server'))
}

function join(source: Socket, sink: Socket, frames: FrameSplitter): void {
  source.on('data', (chunk) => {
    frames.push(chunk)
    sink.write(chunk)
  })
  source.on('close', () => sink.destroy())
  source.on('error', () => sink.destroy())
}

const proxy = createServer(relay)
await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve))
const address = `127.0.0.1:${(proxy.address() as AddressInfo).port}`
const titles = command[0] === '--raw' ? await raw(address, command[1]!) : await run(address)
proxy.close()
writeFileSync(out, `${JSON.stringify(fixtures(), null, 1)}\n`)
process.exit(0)

async function run(proxyAddress: string): Promise<readonly string[]> {
  const [name, ...rest] = command.map((word) => word.replaceAll('{address}', proxyAddress))
  const child = spawn(name!, rest, { stdio: ['inherit', 'inherit', 'inherit'] })
  await new Promise((resolve) => child.once('close', resolve))
  return []
}

/** Sends each frame and waits for its reply or the end of the connection. */
async function raw(proxyAddress: string, file: string): Promise<readonly string[]> {
  const lines = readFileSync(file, 'utf8')
    .split('\n')
    .filter((line) => line.includes('\t'))
  const handshake = `${'0'.repeat(24)}00002710${'0'.repeat(16)}00000010${'0'.repeat(34)}`
  let socket: Socket | undefined
  const names: string[] = []
  for (const line of lines) {
    const [title = '', hex = ''] = line.split('\t')
    if (socket === undefined || socket.destroyed) {
      socket = connect(Number(proxyAddress.split(':')[1]), '127.0.0.1')
      await exchange(socket, handshake)
      names.push('handshake')
    }
    await exchange(socket, hex)
    names.push(title)
  }
  socket?.destroy()
  return names
}

async function exchange(socket: Socket, hex: string): Promise<void> {
  const body = Buffer.from(hex.replaceAll(' ', ''), 'hex')
  const length = Buffer.alloc(4)
  length.writeInt32BE(body.length)
  const xid = body.readInt32BE(0)
  const answered = new Promise<void>((resolve) => {
    let first = true
    const frames = new FrameSplitter({
      maxLength: 0x7fffffff,
      frame: (bytes, start) => {
        const answer = Buffer.from(bytes.buffer, bytes.byteOffset + start, 4).readInt32BE(0)
        if (first && answer === xid) resolve()
        first = answer === -1
      },
    })
    socket.on('data', (chunk) => frames.push(chunk))
    socket.once('close', () => resolve())
  })
  socket.write(Buffer.concat([length, body]))
  await answered
  socket.removeAllListeners('data')
  socket.removeAllListeners('close')
  // A server that closes after its reply does so at once: the next turn of a probe shows it.
  await new Promise((resolve) => setTimeout(resolve, 30))
}

function fixtures(): Fixture[] {
  const all: Fixture[] = []
  for (let connection = 0; connection < connections; connection++) {
    const conversation = new Conversation()
    const frames = recorded.filter((frame) => frame.connection === connection)
    for (const group of exchanges(frames)) {
      const handshake = group[0] === frames[0]
      const described: Frame[] = group.map(({ from, hex }) =>
        describeFrame(conversation, from, hex, handshake),
      )
      all.push({
        id: `${all.length + 1}`,
        title: titles[all.length] ?? titleOf(described),
        server: server!,
        client: client!,
        command: command.join(' '),
        handshake,
        frames: described,
      })
    }
  }
  return all
}

/** Groups frames into exchanges: a request and the frames of the server that follow. */
function exchanges(frames: readonly Recorded[]): Recorded[][] {
  const groups: Recorded[][] = []
  for (const frame of frames) {
    if (frame.from === 'client' || groups.length === 0) groups.push([frame])
    else groups.at(-1)!.push(frame)
  }
  return groups
}

function titleOf(frames: readonly Frame[]): string {
  const error = frames.flatMap(({ parts }) => parts).find(({ record }) => record === 'ReplyHeader')
  const code = (error?.value as { err?: number } | undefined)?.err ?? 0
  return `${frames[0]!.parts.map(({ record }) => record).join(' ')}, answered with ${code}`
}
