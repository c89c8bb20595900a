import { createServer, type Server } from 'node:net'

// Below the range from which the kernel takes ports for outgoing connections: a server that is killed and started again must
// find its port unused.
const FIRST = 15_000
const END = 30_000
/** Whoever listens on the first port of a block has the others, so that processes do not have to know of each other. */
const BLOCK = 100

/** Each port once. A process keeps the blocks that it has taken: a server that is down has its port still. */
async function* ownPorts(): AsyncGenerator<number, undefined> {
  for (let first = FIRST; first < END; first += BLOCK) {
    const claim = await listen(first)
    if (claim === undefined) continue
    // The kernel gives the block back when this process ends, however it does.
    claim.unref()
    for (let port = first + 1; port < first + BLOCK; port++) if (await isFree(port)) yield port
  }
  return undefined
}

const ports = ownPorts()

/** A port for a server of this file of tests. Nobody else is given it, neither in this file nor in one that runs beside it. */
export async function freePort(): Promise<number> {
  const { value } = await ports.next()
  if (value === undefined) throw new Error(`Found no free port between ${FIRST} and ${END}`)
  return value
}

/** Programs that take no ports from here may listen on one. */
async function isFree(port: number): Promise<boolean> {
  const server = await listen(port)
  if (server === undefined) return false
  await new Promise((closed) => server.close(closed))
  return true
}

function listen(port: number): Promise<Server | undefined> {
  return new Promise((done) => {
    const server = createServer()
    server.once('error', () => done(undefined))
    server.listen(port, '127.0.0.1', () => done(server))
  })
}
